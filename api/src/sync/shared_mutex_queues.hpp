// The waiters of shared_mutexes: two queues for each mutex, found by its address. One of the two first waiters is the
// node of the mutex (address_tree.hpp), and holds both queues.
//
// They are not in the mutex, as the mutex may be gone when somebody comes who has left it (shared_mutex.cpp: "left").
// All members are called under the bucket, and none touches a mutex.
#pragma once

#include "api/src/sync/heirs.hpp"
#include "weft/sync/shared_mutex.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace weft::detail {

struct shared_mutex_waiter : heir_waiter {
  shared_mutex_waiter(rt::G* waiting, shared_mutex* m, lock_side s) noexcept : heir_waiter(waiting), of(m), side(s) {}

  shared_mutex* const of;
  const lock_side side;
  shared_mutex_waiter* below[2] = {};  // used in the node of a mutex, as are the queues
  std::array<sync_queue, 2> queues{};
};

class shared_mutex_queues {
 public:
  explicit shared_mutex_queues(const void* address) noexcept : bucket(bucket_of(address)), address_(address) {}

  // The mutex, if somebody waits for it; otherwise null, and it may be gone.
  shared_mutex* mutex() const noexcept {
    const shared_mutex_waiter* node = *place();
    return node ? node->of : nullptr;
  }

  // The first waiter of a side, or null.
  shared_mutex_waiter* first(lock_side s) const noexcept {
    shared_mutex_waiter* node = *place();
    return node ? first_of(*node, s) : nullptr;
  }

  void push_back(shared_mutex_waiter& w) noexcept {
    shared_mutex_waiter** p = place();
    if (!*p) {
      w.queues = {};
      tree::put(p, w);
    }
    detail::push_back(queue_of(**p, w.side), w);
  }

  void remove(shared_mutex_waiter& w) noexcept { remove_at(place(), w); }

  // Drops the waiters at the front of the queues that run() has left behind.
  void drop_abandoned() noexcept { drop_abandoned_at(place()); }
  static void drop_abandoned_of_all(sync_bucket& b) noexcept { b.shared_mutexes.for_each_place(drop_abandoned_at); }

  // Claims each waiter that can be claimed, and calls f(waiter) for it. Takes those that cannot be claimed out of the
  // queue. Leaves out heirs, which are on their way already.
  template <class F>
  void claim_each(lock_side s, wake_list& woken, F f) noexcept {
    shared_mutex_waiter* next = first(s);
    shared_mutex_waiter* const last = next ? static_cast<shared_mutex_waiter*>(next->prev) : nullptr;
    for (shared_mutex_waiter* w = nullptr; w != last;) {
      w = std::exchange(next, static_cast<shared_mutex_waiter*>(next->next));
      if (w->heir) continue;
      if (woken.claim(*w)) {
        f(*w);
      } else {
        remove(*w);
      }
    }
  }

  void invite_all(lock_side s, wake_list& woken, rt::nanos now) noexcept {
    claim_each(s, woken, [=](heir_waiter& w) noexcept { w.invite(now); });
  }

  // Returns how many were handed the lock.
  std::uint32_t hand_over_to_all(lock_side s, wake_list& woken) noexcept {
    std::uint32_t n = 0;
    claim_each(s, woken, [&](shared_mutex_waiter& w) noexcept {
      w.handed_over = true;
      remove(w);
      ++n;
    });
    return n;
  }

  sync_bucket& bucket;

 private:
  using tree = address_tree<shared_mutex_waiter>;

  static sync_queue& queue_of(shared_mutex_waiter& node, lock_side s) noexcept {
    return node.queues[static_cast<std::size_t>(s)];
  }
  static shared_mutex_waiter* first_of(shared_mutex_waiter& node, lock_side s) noexcept {
    return static_cast<shared_mutex_waiter*>(queue_of(node, s).first);
  }

  shared_mutex_waiter** place() const noexcept { return bucket.shared_mutexes.place(address_); }

  static void remove_at(shared_mutex_waiter** place, shared_mutex_waiter& w) noexcept {
    shared_mutex_waiter& node = **place;
    detail::remove(queue_of(node, w.side), w);
    if (&node != &w) return;
    shared_mutex_waiter* other = first_of(node, lock_side::writer);
    if (!other) other = first_of(node, lock_side::reader);
    if (other) other->queues = node.queues;
    tree::replace(place, other);
  }

  static void drop_abandoned_at(shared_mutex_waiter** place) noexcept {
    while (shared_mutex_waiter* node = *place) {
      shared_mutex_waiter* w = first_of(*node, lock_side::writer);
      if (!w || !w->abandoned()) w = first_of(*node, lock_side::reader);
      if (!w || !w->abandoned()) return;
      remove_at(place, *w);
    }
  }

  const void* const address_;
};

}  // namespace weft::detail
