// How many threads may run goroutines without a P. Beyond that, goroutines that have not begun wait
// (sched/newcomers.cpp): one of them may be the next to keep its thread. From time to time they are let in, until one
// more does.
#pragma once

#include "runtime/clock.hpp"

namespace weft::rt {

// By sysmon only.
class gate {
 public:
  bool closed() const noexcept { return closed_; }

  // took: a P was taken from a goroutine since the last look.
  void look(nanos now, bool took) noexcept;

 private:
  static constexpr nanos first_wait = 100 * millisecond;
  bool closed_ = false;
  bool said_ = false;
  nanos open_at_ = 0;
  nanos wait_ = first_wait;
};

}  // namespace weft::rt
