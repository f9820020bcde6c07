// When a sleep shall end, so that many wake together. Waking a thread costs the processor more than most goroutines do
// that it is woken for: 1000 that sleep some milliseconds, each woken to the microsecond, keep a processor busy with
// nothing else. So where sleeps begin so often that they would meet there, they end at the points of a grid: later, by
// an eighth of the sleep and half a millisecond at most, or by 1/128 of it and 1 ms. A few sleepers end on time, each.
//
// How many meet is told by how often sleeps began here of late, and not by how many timers are pending: most of those
// are time limits, which nobody will wake for.
#pragma once

#include "runtime/clock.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace weft::rt {

struct sleep_end {
  nanos at;
  bool with_others = false;  // need not be met to the microsecond
};

// Of one P; only its owner's.
class sleep_crowd {
 public:
  // Of a sleep of `length` that begins now and is due at `due`.
  sleep_end end_of(nanos length, nanos due) noexcept {
    const nanos step = grid(length);
    if (due > forever - step) return {due};
    count(due - length);
    if (sleeps_per_window_ * step < sleeps_per_point * window) return {due};
    return {(due + step - 1) & -step, true};
  }

  // A power of two, which hardly any sleep is: one who sleeps again and again does not always meet the same point.
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
  static constexpr std::int64_t sleeps_per_point = 1;  // of this P's; with fewer each is met alone

  nanos window_began_ = 0;
  std::int64_t sleeps_begun_ = 0;
  std::int64_t sleeps_per_window_ = 0;
};

}  // namespace weft::rt
