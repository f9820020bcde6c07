// latch: a count that goes down to zero once; waiters wait for that. As std::latch.
//
// Counting below zero is fatal, and so is a negative argument, also to the constructor. A latch may be destroyed as
// soon as its last wait() has returned: the count_down() that made it return does not touch it any more. All members:
// anywhere.
#pragma once

#include <weft/detail/countdown.hpp>

#include <chrono>
#include <cstddef>

namespace weft {

class latch {
 public:
  static constexpr std::ptrdiff_t max() noexcept { return detail::countdown::max; }

  constexpr explicit latch(std::ptrdiff_t expected) noexcept : count_(valid(expected) ? expected : 0) {
    if (!valid(expected)) [[unlikely]]
      misuse("latch", expected);
  }

  void count_down(std::ptrdiff_t n = 1) noexcept {
    if (n < 0 || !count_.add(-n)) [[unlikely]]
      misuse("count_down", n);
  }

  // True if the count is zero.
  [[nodiscard]] bool try_wait() const noexcept { return count_.is_zero(); }

  // Waits until the count is zero. The caller then sees what was done before each count_down().
  void wait() const { count_.wait(detail::never_ns, detail::countdown_of::latch); }

  // As wait(), but for at most d, or until tp. False: the time passed. Throws std::bad_alloc if there is no memory for
  // the timer.
  template <class Rep, class Period>
  bool wait_for(const std::chrono::duration<Rep, Period>& d) const {
    return count_.wait(detail::deadline_in(d), detail::countdown_of::latch);
  }
  template <class Clock, class Duration>
  bool wait_until(const std::chrono::time_point<Clock, Duration>& tp) const {
    return detail::wait_until_point(tp, [&](std::int64_t t) { return count_.wait(t, detail::countdown_of::latch); });
  }

  void arrive_and_wait(std::ptrdiff_t n = 1) {
    count_down(n);
    wait();
  }

 private:
  static constexpr bool valid(std::ptrdiff_t n) noexcept { return n >= 0 && n <= max(); }
  [[noreturn]] WEFT_API void misuse(const char* call, std::ptrdiff_t n) const noexcept;

  mutable detail::countdown count_;
};

}  // namespace weft
