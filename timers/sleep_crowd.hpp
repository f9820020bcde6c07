// Decides when a sleep ends, so that many sleepers wake together. Waking a thread costs the processor more than most of
// the goroutines that it is woken for: 1000 goroutines that sleep for some milliseconds, each woken to the microsecond,
// keep a processor busy with nothing else. So where sleeps begin so often that several would end between two points of
// a grid, they end at these points. That is later by at most an eighth of the sleep, up to half a millisecond; or, if
// that is more, by at most 1/128 of the sleep, up to 1 ms. Where there are few sleepers, each sleep ends on time.
//
// How many sleeps would meet is estimated from how often sleeps began here lately, not from the number of pending
// timers: most of those are time limits, and no thread will be woken for them.
#pragma once

#include "runtime/clock.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace weft::rt {

struct sleep_end {
  nanos at;
  bool with_others = false;  // on the grid: the sleep need not end on time to the microsecond
};

// Belongs to one P. Only the owner of that P may use it.
class sleep_crowd {
 public:
  // Returns the end of a sleep that lasts for `length`, begins now and is due at `due`.
  sleep_end end_of(nanos length, nanos due) noexcept {
    const nanos step = grid(length);
    if (due > forever - step) return {due};
    count(due - length);
    if (sleeps_per_window_ * step < sleeps_per_point * window) return {due};
    return {(due + step - 1) & -step, true};
  }

  // Returns the distance between two points of the grid. It is a power of two, which hardly any sleep's length is. So a
  // goroutine that sleeps again and again does not always become due at the same distance from a point.
  static constexpr nanos grid(nanos length) noexcept {
    return std::max(std::min(floor(length / 8), widest_short), std::min(floor(length / 128), widest_long));
  }

 private:
  static constexpr nanos floor(nanos n) noexcept {
    return static_cast<nanos>(std::bit_floor(static_cast<std::uint64_t>(n)));
  }

  void count(nanos now) noexcept {
    ++sleeps_begun_;
    const nanos since = now - window_began_;
    if (since < window) return;
    sleeps_per_window_ = sleeps_begun_ * window / since;
    window_began_ = now;
    sleeps_begun_ = 0;
  }

  static constexpr nanos widest_short = nanos{1} << 19, widest_long = nanos{1} << 20;
  static constexpr nanos window = nanos{1} << 23;
  static constexpr std::int64_t sleeps_per_point = 1;  // of this P; with fewer sleeps, each ends on time

  nanos window_began_ = 0;
  std::int64_t sleeps_begun_ = 0;
  std::int64_t sleeps_per_window_ = 0;
};

}  // namespace weft::rt
