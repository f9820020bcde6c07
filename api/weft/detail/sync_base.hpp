// What the headers in sync/ share. Not for users.
#pragma once

#include <weft/detail/config.hpp>
#include <weft/detail/time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace weft::detail {

// Who waits lies on the stack of the waiting goroutine or thread (api/src/sync/parking.hpp).
struct sync_waiter;
struct heir_waiter;
class wake_list;

// Those who wait for one object, first come first. Under the lock that belongs to the object's address.
struct sync_queue {
  sync_waiter* first = nullptr;
};

// For who finds that another thread was faster at an atomic word. Two that change one word in turn make its cache line
// pass between their processors for each change, which costs several times the change: the slower one pauses for as
// long as tens of changes take, and the faster one makes those of its own (as a test-and-set lock backs off: Anderson,
// "The Performance of Spin Lock Alternatives", 1990).
WEFT_API void spin_backoff() noexcept;

// Out-of-line functions take deadlines: nanoseconds of the steady clock, never_ns for none.
template <class Rep, class Period>
std::int64_t deadline_in(const std::chrono::duration<Rep, Period>& d) noexcept {
  const std::int64_t ns = to_ns(d);
  if (ns >= never_ns) return never_ns;
  std::int64_t sum;
  if (__builtin_add_overflow(to_ns(std::chrono::steady_clock::now()), ns, &sum)) return ns > 0 ? never_ns : 0;
  return sum;
}

// For a clock that may be set meanwhile: as it goes now.
template <class Clock, class Duration>
std::int64_t deadline_at(const std::chrono::time_point<Clock, Duration>& tp) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
    return to_ns(tp);
  } else {
    // In nanoseconds that saturate: the difference of two points need not fit.
    const std::int64_t until = to_ns(tp.time_since_epoch());
    if (until >= never_ns) return never_ns;
    std::int64_t left;
    if (__builtin_sub_overflow(until, to_ns(Clock::now().time_since_epoch()), &left)) left = 0;
    return left <= 0 ? 0 : deadline_in(std::chrono::nanoseconds(left));
  }
}

// After deadline_at(tp): false if the clock was set back before that.
template <class Clock, class Duration>
bool has_come(const std::chrono::time_point<Clock, Duration>& tp) {
  return std::is_same_v<Clock, std::chrono::steady_clock> ||
         to_ns(Clock::now().time_since_epoch()) >= to_ns(tp.time_since_epoch());
}

// wait(deadline) until the point has come.
template <class Clock, class Duration, class Wait>
bool wait_until_point(const std::chrono::time_point<Clock, Duration>& tp, Wait wait) {
  for (;;) {
    if (wait(deadline_at(tp))) return true;
    if (has_come(tp)) return false;
  }
}

}  // namespace weft::detail
