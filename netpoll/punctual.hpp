// How late the kernel wakes whoever sleeps until a time, learnt from how late it did. On an idle processor that is
// tens of microseconds: the timer's interrupt, the way out of the idle state, the switch. A sleep that shall end in
// time ends that much earlier, and its end is watched.
//
// The estimate follows a quantile: three steps up when a sleep was later, one down when it was not, so it rests where
// three of four were not later. A step up is an eighth of the way, within bounds: soon there, and what other processes
// do to single sleeps does not carry it away.
#pragma once

#include "runtime/clock.hpp"

#include <algorithm>

namespace weft::rt {

class wake_lateness {
 public:
  // What to take off a sleep that is still `ahead` long: at most half of it, so that watching never takes longer than
  // sleeping did.
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
