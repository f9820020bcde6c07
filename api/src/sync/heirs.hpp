// Heirs: waiting for a lock that newcomers may take first.
//
// An unlock frees the lock and wakes the waiter whose turn it is. Most often a goroutine that is running already takes
// the lock again meanwhile. The woken waiter is an heir: it keeps its place in the queue, and as long as it is on its
// way, nobody else is woken. If it comes too late, it waits on. A waiter that has waited for `patience` is not passed
// by any more: unlock hands the lock over to it (Go's starvation mode, decided for each waiter). On the only P, an heir
// cannot come before the goroutine that unlocked gives way; so its time slice ends after a millisecond (shorten_slice).
//
// A waiter whose own timer wakes it to look again (comes_back) is on its way without a claim. It may be handed the lock
// meanwhile: it looks for that under the bucket before anything else.
//
// An heir whose run() ended before it came never comes. Every change of the queue looks for such heirs. A foreign
// thread may be in the queue across the end of a run(), so it looks again from time to time.
#pragma once

#include "api/src/sync/parking.hpp"

#include <algorithm>

namespace weft::detail {

inline constexpr rt::nanos patience = rt::millisecond;

// How often to look whether the lock is free before sleeping.
inline constexpr int lock_looks = 4;
inline constexpr int heir_looks = 8;

struct heir_waiter : sync_waiter {
  using sync_waiter::sync_waiter;
  bool is_old(rt::nanos now) const noexcept { return now - since >= patience; }
  bool is_late(rt::nanos now) const noexcept { return now - invited >= patience; }
  void invite(rt::nanos now) noexcept {
    heir = true;
    invited = now;
  }
  bool abandoned() const noexcept { return g->get_state() == rt::g_state::abandoned; }

  rt::nanos since = 0;
  rt::nanos invited = 0;     // shared_mutex: since when it is an heir
  bool heir = false;         // woken, on its way; still queued
  bool handed_over = false;  // it holds the lock, and is not queued
  bool comes_back = false;   // it waits until it looks again: if it cannot be claimed, it is on its way, or run() ends
};

template <class Try>
bool look(int times, Try try_to_lock) noexcept {
  for (; times > 0; --times) {
    if (try_to_lock()) return true;
    rt::cpu_relax();
  }
  return false;
}

// Looks again, for 100 pauses of the processor (2 to 5 µs), if that pays (may_look_longer).
template <class Try>
bool look_longer(Try try_to_lock) noexcept {
  constexpr int looks = 25, pauses_between = 4;
  if (!may_look_longer()) return false;
  for (int i = 0; i < looks; ++i) {
    if (try_to_lock()) return true;
    for (int pauses = pauses_between; pauses > 0; --pauses) rt::cpu_relax();
  }
  return false;
}

// Waits for a lock until `deadline`; tries once if that has passed. False: the time has passed. `lock` has these
// members, all but the first two called under the bucket:
//   take()           takes the lock if it is free
//   take_soon()      may wait awake for a while (look_longer), and takes the lock if it becomes free meanwhile
//   take_or_queue()  takes the lock; or else w is queued afterwards, and somebody will wake it
//   look_again_at()  when one that waits is to call take_or_queue() again, though nobody wakes it; never_ns: need not
//   taken()          w has the lock, and is not to be woken
//   give_up()        w does not want the lock any more, and is still queued
template <class Lock>
bool lock_as_heir(rt::runtime_scope& scope, heir_waiter& w, rt::goroutine_lock& bucket, rt::wait_reason why,
                  std::int64_t deadline, Lock lock) {
  constexpr rt::nanos thread_looks_again = 100 * rt::millisecond;
  w.since = rt::nanotime();
  if (deadline <= w.since) return lock.take();
  bool has_memory = true;  // for a timer with which to look again
  for (;;) {
    bucket.acquire_lock();
    if (w.handed_over) {
      bucket.release_lock();
      return true;
    }
    w.heir = false;
    if (!lock.take_or_queue()) {
      std::int64_t until = has_memory ? std::min(deadline, lock.look_again_at()) : deadline;
      if (!scope.m()) until = std::min(until, rt::nanotime() + thread_looks_again);
      w.comes_back = until < deadline;
      // Without memory for its timer, one that would have come back does so at once, and is not claimed meanwhile.
      auto no_timer = [&]() noexcept { w.comes_back ? static_cast<void>(w.g->claim(w.ticket)) : lock.give_up(); };
      try {
        if (!block_once(scope, w, bucket, why, until, no_timer)) {
          if (rt::nanotime() < deadline) continue;
          rt::lock_guard hold(bucket);
          if (w.queued) lock.give_up();
          return w.handed_over;
        }
      } catch (const std::bad_alloc&) {
        if (!w.comes_back) throw;
        has_memory = false;
        continue;
      }
      if (w.handed_over) return true;
      if (!look(heir_looks, [&]() noexcept { return lock.take(); }) && !lock.take_soon()) continue;
      bucket.acquire_lock();
    }
    lock.taken();
    bucket.release_lock();
    return true;
  }
}

}  // namespace weft::detail
