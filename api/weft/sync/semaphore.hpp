// semaphore: a number of permits. acquire waits until there are enough and takes some; release gives some back.
//
// Waiters are served in order of arrival: a waiter that wants many permits is not passed by one that wants few, and
// while somebody waits, try_acquire gets nothing. Negative amounts, and more permits than max(), are fatal. All
// members: anywhere.
//
// It may be destroyed as soon as the last acquire has returned: the release that made it return does not touch it any
// more.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/sync_base.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft {

class semaphore {
 public:
  static constexpr std::ptrdiff_t max() noexcept { return PTRDIFF_MAX / 4; }

  constexpr explicit semaphore(std::ptrdiff_t permits) noexcept : word_(valid(permits) ? permits * permit : 0) {
    if (!valid(permits)) [[unlikely]]
      misuse("permits", permits);
  }
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;

  // Waits until n permits are there, and takes them. If n is more than max(), it waits for ever.
  void acquire(std::ptrdiff_t n = 1) {
    if (!take(n)) [[unlikely]]
      acquire_slow(n, detail::never_ns);
  }

  // Takes n permits if they are there and nobody waits.
  [[nodiscard]] bool try_acquire(std::ptrdiff_t n = 1) noexcept { return take(n) || (available() >= n && retake(n)); }

  // As acquire(), but waits at most d, or until tp. False: the time passed, and nothing was taken. Throws
  // std::bad_alloc if there is no memory for the timer.
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period>& d, std::ptrdiff_t n = 1) {
    return take(n) || acquire_slow(n, detail::deadline_in(d));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration>& tp, std::ptrdiff_t n = 1) {
    return take(n) || detail::wait_until_point(tp, [&](std::int64_t t) { return acquire_slow(n, t); });
  }

  // Gives n permits back, and wakes the waiters for which there are now enough.
  void release(std::ptrdiff_t n = 1) noexcept {
    std::int64_t w = word_.load(std::memory_order_relaxed);
    while ((w & waiters) == 0 && n >= 0 && n <= max() - w / permit) {
      if (word_.compare_exchange_weak(w, w + n * permit, std::memory_order_release, std::memory_order_relaxed)) return;
    }
    release_slow(n);
  }

  // Returns how many permits are free now.
  std::ptrdiff_t available() const noexcept { return word_.load(std::memory_order_seq_cst) / permit; }

 private:
  static constexpr std::int64_t waiters = 1;  // the queue is not empty; the word changes only under the bucket's lock
  static constexpr std::int64_t permit = 2;

  static constexpr bool valid(std::ptrdiff_t n) noexcept { return n >= 0 && n <= max(); }

  bool take(std::ptrdiff_t n) noexcept {
    if (n < 0) [[unlikely]]
      misuse("acquire", n);
    for (;;) {
      // seq_cst: sees the permits that a release() that has returned has left (semaphore.cpp: grant).
      std::int64_t w = word_.load(std::memory_order_seq_cst);
      if ((w & waiters) != 0 || w / permit < n) return false;
      if (word_.compare_exchange_strong(w, w - n * permit, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
      detail::spin_backoff();
    }
  }

  WEFT_API bool retake(std::ptrdiff_t n) noexcept;  // the first waiters may have been left behind by a run()
  WEFT_API bool acquire_slow(std::ptrdiff_t n, std::int64_t deadline);
  WEFT_API void release_slow(std::ptrdiff_t n) noexcept;
  [[noreturn]] WEFT_API void misuse(const char* what, std::ptrdiff_t n) const noexcept;
  void grant(detail::wake_list& woken, std::int64_t permits) noexcept;
  void skip_abandoned() noexcept;

  detail::atomic<std::int64_t> word_;
  detail::sync_queue queue_{};
};

}  // namespace weft
