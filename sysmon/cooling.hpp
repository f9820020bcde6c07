// When the memory of free stacks goes back to the system (runtime/stack_cooling.hpp): in intervals of a second, and
// within one a little at a time, at most 6,400 stacks. Of shallow ones that takes 1 % of a processor, as Go's scavenger
// does.
#pragma once

#include "runtime/clock.hpp"

namespace weft::rt {

// By sysmon only.
class cooling {
 public:
  explicit cooling(nanos now) noexcept : next_interval_(now + interval) {}

  // In each round.
  void look(nanos now) noexcept;

  // When some more are to be cooled; forever: not in this interval.
  nanos next_batch() const noexcept { return next_batch_; }

  // When it wants the next round although nothing runs.
  nanos next_look() const noexcept;

 private:
  static constexpr nanos interval = second;
  static constexpr nanos between_batches = 10 * millisecond;

  nanos next_interval_;
  nanos next_batch_ = forever;
};

}  // namespace weft::rt
