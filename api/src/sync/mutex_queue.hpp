// The waiters of mutexes: the queues of a bucket's mutexes, found by address. The first waiter of each queue is the
// node of its mutex (address_tree.hpp).
//
// A bell (mutex.cpp) rings as long as a queue of its bucket has somebody to wake: a first waiter that is no heir. These
// first waiters are counted, at the points where a waiter becomes one or ceases to be one (`count`, `discount`).
#pragma once

#include "api/src/sync/heirs.hpp"

#include <utility>

namespace weft::detail {

struct mutex_waiter : heir_waiter {
  mutex_waiter(rt::G* waiting, mutex* m) noexcept : heir_waiter(waiting), of(m) {}

  mutex* const of;
  mutex_waiter* below[2] = {};  // used in the first waiter of a queue
  bool counted = false;         // in sync_bucket::to_wake
  bool passed_by = false;       // it has come again, and found the mutex held again
};

// The values of mutex::must_wake_ other than 0 (mutex.cpp).
inline constexpr std::uint8_t armed_by_waiter = 1;
inline constexpr std::uint8_t armed_by_holder = 2;

// Added to every bell: without membarrier, and at the end of a run(). Changed by ring_for_all only.
inline constinit rt::atomic<std::uint32_t> rings_for_all{0};

// All members of the two classes below are called under the bucket.
class mutex_queues {
 public:
  explicit mutex_queues(std::size_t number) noexcept : bucket(bucket_number(number)), bell_(mutex_bells[number]) {}

  void set_bell() noexcept { bell_.rings.store(rings_for_all.load(rt::relaxed) + bucket.to_wake, rt::relaxed); }

  // Drops the waiters at the front of all queues that run() has left behind. Their mutexes may be gone and are not
  // touched.
  void drop_abandoned_of_all() noexcept {
    bucket.mutexes.for_each_place([this](mutex_waiter** place) noexcept {
      while (*place && (*place)->abandoned()) remove_at(place, **place);
    });
  }

  sync_bucket& bucket;

 protected:
  using tree = address_tree<mutex_waiter>;

  void count(mutex_waiter& first) noexcept {
    if (first.heir) return discount(first);
    if (std::exchange(first.counted, true)) return;
    ++bucket.to_wake;
    set_bell();
  }
  void discount(mutex_waiter& w) noexcept {
    if (!std::exchange(w.counted, false)) return;
    --bucket.to_wake;
    set_bell();
  }

  // Begins a queue that is empty.
  void begin_at(mutex_waiter** place, mutex_waiter& w) noexcept {
    tree::put(place, w);
    count(w);
  }

  void remove_at(mutex_waiter** place, mutex_waiter& w) noexcept {
    mutex_waiter* first = *place;
    sync_queue ring{first};
    detail::remove(ring, w);
    if (ring.first == first) return;
    if (mutex_waiter* next = tree::replace(place, static_cast<mutex_waiter*>(ring.first))) count(*next);
    discount(w);  // only now: while must_wake_ is armed_by_waiter, the bell must not fall even for a moment (U2)
  }

 private:
  mutex_bell& bell_;
};

// The queue for one address.
struct mutex_queue : mutex_queues {
  explicit mutex_queue(const void* mutex_address) noexcept
      : mutex_queues(address_hash(mutex_address)), address(mutex_address) {}

  // The first waiter, or null.
  mutex_waiter* first() const noexcept { return *place(); }

  // Appends w. must_wake_ as armed_by_waiter is of use only while the bell rings. If waiters were dropped, the bell may
  // have fallen with them, and if nobody is left, must_wake_ is lowered, so that it is armed anew.
  void join(mutex_waiter& w, mutex& m) noexcept {
    drop_abandoned();
    mutex_waiter** p = place();
    if (!*p && m.must_wake_.load(rt::relaxed) == armed_by_waiter) m.must_wake_.store(0, rt::relaxed);
    sync_queue ring{*p};
    detail::push_back(ring, w);
    if (!*p) begin_at(p, w);
  }

  void remove(mutex_waiter& w) noexcept { remove_at(place(), w); }

  // Drops the waiters at the front that run() has left behind.
  void drop_abandoned() noexcept {
    for (mutex_waiter* w; (w = first()) && w->abandoned();) remove(*w);
  }

  // Claims the first waiter that can be claimed, and returns it, still the first. Null: nobody waits, or an heir is on
  // its way.
  mutex_waiter* claim_first(wake_list& woken) noexcept {
    while (mutex_waiter* w = first()) {
      if (w->heir && !w->abandoned()) return nullptr;
      if (!w->heir && woken.claim(*w)) return w;
      remove(*w);
    }
    return nullptr;
  }

  // Brings must_wake_ and the bell in line with the queue. True: there is somebody to wake now, and unlock took the
  // fast path until now (this was W0).
  bool settle(mutex& m) noexcept {
    bool was = m.must_wake_.load(rt::relaxed) != 0;
    bool is = settle_bell();
    if (was != is) m.must_wake_.store(is ? armed_by_waiter : 0, rt::relaxed);
    return is && !was;
  }

  // The same for a caller that holds the mutex, and so needs no W1. `contended`: arms for waiters that will come, too.
  void settle_as_holder(mutex& m, bool contended) noexcept {
    bool is = settle_bell();
    m.must_wake_.store(is || contended ? armed_by_holder : 0, rt::relaxed);
  }

  // True: somebody holds the mutex, so nothing needs to be done for the waiters.
  static bool is_held(const mutex& m) noexcept { return m.held_.load(rt::relaxed) != 0; }

  const void* const address;

 private:
  mutex_waiter** place() const noexcept { return bucket.mutexes.place(address); }

  // True: there is somebody to wake.
  bool settle_bell() noexcept {
    mutex_waiter* w = first();
    if (w) count(*w);
    return w && !w->heir;
  }
};

}  // namespace weft::detail
