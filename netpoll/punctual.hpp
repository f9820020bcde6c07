// Estimates how late the kernel wakes a thread that sleeps until a time, from how late it was before. On an idle
// processor that is tens of microseconds: the timer's interrupt, the way out of the idle state, the thread switch. A
// sleep that must end on time is made shorter by that much, and the thread watches the clock for the rest.
//
// The estimate follows a quantile. It goes up by three steps after a sleep that was later, and down by one step after
// one that was not. So it settles where three of four sleeps are not later. If an eighth of the difference is more than
// three steps, it goes up by that, but by no more than twelve steps. So it gets there soon, and a single sleep that
// other processes have delayed does not carry it away.
#pragma once

#include "runtime/clock.hpp"

#include <algorithm>

namespace weft::rt {

class wake_lateness {
 public:
  // Returns by how much to shorten a sleep of length `ahead`. That is at most half of it, so that watching never takes
  // longer than sleeping.
  nanos allowance(nanos ahead) const noexcept { return std::min(estimate_, ahead / 2); }

  void observe(nanos late) noexcept {
    if (late > estimate_) {
      estimate_ += std::clamp((late - estimate_) / 8, 3 * step, 12 * step);
    } else {
      estimate_ -= step;
    }
    estimate_ = std::clamp<nanos>(estimate_, 0, longest);
  }

  static constexpr nanos longest = 120 * microsecond;

 private:
  static constexpr nanos step = microsecond / 2;
  nanos estimate_ = 30 * microsecond;
};

}  // namespace weft::rt
