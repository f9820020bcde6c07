// When the memory of free stacks goes back to the system (runtime/stack_cooling.hpp): in intervals of a second, and
// within one a little at each look, so that it takes about 1 % of a processor, as Go's scavenger does.
#pragma once

#include "runtime/clock.hpp"

namespace weft::rt {

// By sysmon only.
class cooling {
 public:
  explicit cooling(nanos now) noexcept : next_interval_(now + interval) {}

  // In each round. `anything_ran`: since the last one.
  void look(nanos now, bool anything_ran) noexcept;

  // When it wants the next round, whatever else goes on. Forever: until something has run.
  nanos next_look() const noexcept { return next_look_; }

 private:
  static constexpr nanos interval = second;
  static constexpr nanos between_two = 10 * millisecond;  // some are cooled at a time

  nanos next_interval_;
  nanos next_look_ = forever;
  bool some_left_ = false;
  bool some_free_ = true;  // as far as is known
};

}  // namespace weft::rt
