// condition_variable: waits for a change of the data that a mutex protects. Like the standard's, with weft::mutex.
//
//   wait            unlocks the mutex, waits for a notification, locks the mutex again
//   notify_one      wakes the waiter that has waited longest, if there is one
//   notify_all      wakes all that wait now
//
// wait() never returns without a notification, except wait_until() if its clock is set back. But between the
// notification and the return of wait(), others may have held the mutex. So use the forms with a predicate. All
// members: anywhere. The wait functions must be called with the mutex locked; it is fatal if the lock does not own it.
//
// It may be destroyed when all waiters have been notified, even if they have not returned yet. Waiters with a time
// limit must have returned.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/sync/mutex.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace weft {

class condition_variable {
 public:
  constexpr condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  void notify_one() noexcept {
    if (anybody()) wake(false);
  }
  void notify_all() noexcept {
    if (anybody()) wake(true);
  }

  void wait(std::unique_lock<mutex>& lock) { wait_slow(lock.mutex(), lock.owns_lock(), detail::never_ns); }

  // Waits until pred() is true. pred is called with the mutex locked.
  template <class Predicate>
  void wait(std::unique_lock<mutex>& lock, Predicate pred) {
    while (!pred()) wait(lock);
  }

  // Waits for a notification for at most d, or until tp. Throws std::bad_alloc if there is no memory for the timer; the
  // mutex is still locked then.
  template <class Rep, class Period>
  std::cv_status wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& d) {
    return wait_steady(lock, detail::deadline_in(d));
  }
  template <class Clock, class Duration>
  std::cv_status wait_until(std::unique_lock<mutex>& lock, const std::chrono::time_point<Clock, Duration>& tp) {
    // Waits only once: between two waits a notification would find no waiter.
    const bool notified = wait_steady(lock, detail::deadline_at(tp)) == std::cv_status::no_timeout;
    return notified || !detail::has_come(tp) ? std::cv_status::no_timeout : std::cv_status::timeout;
  }

  // Waits until pred() is true, for at most d, or until tp. Returns what pred() returned last.
  template <class Rep, class Period, class Predicate>
  bool wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& d, Predicate pred) {
    const std::int64_t deadline = detail::deadline_in(d);
    while (!pred()) {
      if (wait_steady(lock, deadline) == std::cv_status::timeout) return pred();
    }
    return true;
  }
  template <class Clock, class Duration, class Predicate>
  bool wait_until(std::unique_lock<mutex>& lock, const std::chrono::time_point<Clock, Duration>& tp, Predicate pred) {
    while (!pred()) {
      if (wait_until(lock, tp) == std::cv_status::timeout) return pred();
    }
    return true;
  }

 private:
  // True if there may be waiters. A waiter sets waiting_ while it holds the mutex. A notifier that has changed the
  // protected data after that sees it here, by way of the mutex. A notifier whose change came before need not wake the
  // waiter.
  bool anybody() const noexcept { return waiting_.load(std::memory_order_relaxed) != 0; }

  std::cv_status wait_steady(std::unique_lock<mutex>& lock, std::int64_t deadline) {
    return wait_slow(lock.mutex(), lock.owns_lock(), deadline) ? std::cv_status::no_timeout : std::cv_status::timeout;
  }

  WEFT_API bool wait_slow(mutex* m, bool owned, std::int64_t deadline);
  WEFT_API void wake(bool all) noexcept;

  detail::atomic<std::uint32_t> waiting_{0};  // 1: the queue is not empty
  detail::sync_queue queue_{};
};

}  // namespace weft
