// What the headers in sync/ share. Not for users.
#pragma once

#include <weft/detail/config.hpp>
#include <weft/detail/time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace weft::detail {

// A waiter lies on the stack of the waiting goroutine or thread (api/src/sync/parking.hpp).
struct sync_waiter;
struct heir_waiter;
class wake_list;

// The waiters of one object, in order of arrival. Guarded by the lock that belongs to the object's address.
struct sync_queue {
  sync_waiter* first = nullptr;
};

// Pauses a thread that found another thread faster at changing an atomic word. When two threads change one word in
// turn, its cache line passes between their processors for each change, which costs several times as much as the
// change. So the slower thread pauses for as long as tens of changes take, and the faster one makes several of its own
// meanwhile. A test-and-set lock backs off in the same way (Anderson, "The Performance of Spin Lock Alternatives",
// 1990).
WEFT_API void spin_backoff() noexcept;

// Returns the deadline that is d from now. Out-of-line functions take deadlines: nanoseconds of the steady clock;
// never_ns for none.
template <class Rep, class Period>
std::int64_t deadline_in(const std::chrono::duration<Rep, Period>& d) noexcept {
  const std::int64_t ns = to_ns(d);
  if (ns >= never_ns) return never_ns;
  std::int64_t sum;
  if (__builtin_add_overflow(to_ns(std::chrono::steady_clock::now()), ns, &sum)) return ns > 0 ? never_ns : 0;
  return sum;
}

// Returns tp as a deadline. For a clock that may be set meanwhile, that is an estimate from what the clock shows now.
template <class Clock, class Duration>
std::int64_t deadline_at(const std::chrono::time_point<Clock, Duration>& tp) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
    return to_ns(tp);
  } else {
    // Computed in nanoseconds that saturate, since the difference of two points need not fit.
    const std::int64_t until = to_ns(tp.time_since_epoch());
    if (until >= never_ns) return never_ns;
    std::int64_t left;
    if (__builtin_sub_overflow(until, to_ns(Clock::now().time_since_epoch()), &left)) left = 0;
    return left <= 0 ? 0 : deadline_in(std::chrono::nanoseconds(left));
  }
}

// True if tp has come. Called after the deadline deadline_at(tp) has passed; false if the clock was set back meanwhile.
template <class Clock, class Duration>
bool has_come(const std::chrono::time_point<Clock, Duration>& tp) {
  return std::is_same_v<Clock, std::chrono::steady_clock> ||
         to_ns(Clock::now().time_since_epoch()) >= to_ns(tp.time_since_epoch());
}

// Calls wait(deadline) until it succeeds or tp has come.
template <class Clock, class Duration, class Wait>
bool wait_until_point(const std::chrono::time_point<Clock, Duration>& tp, Wait wait) {
  for (;;) {
    if (wait(deadline_at(tp))) return true;
    if (has_come(tp)) return false;
  }
}

}  // namespace weft::detail
