// When the memory of free stacks goes back to the system (runtime/stack_cooling.hpp). sysmon goes by intervals of a
// second, and within an interval returns a little memory at a time, at most that of 6,400 stacks. If these are shallow,
// that takes 1 % of a processor, which is also the share of Go's scavenger.
#pragma once

#include "runtime/clock.hpp"

namespace weft::rt {

// Used by sysmon only.
class cooling {
 public:
  explicit cooling(nanos now) noexcept : next_interval_(now + interval) {}

  // Called in each round.
  void look(nanos now) noexcept;

  // When the next batch of stacks is to be cooled; forever: there is none in this interval.
  nanos next_batch() const noexcept { return next_batch_; }

  // When sysmon has to do its next round even if nothing runs.
  nanos next_look() const noexcept;

 private:
  static constexpr nanos interval = second;
  static constexpr nanos between_batches = 10 * millisecond;

  nanos next_interval_;
  nanos next_batch_ = forever;
};

}  // namespace weft::rt
