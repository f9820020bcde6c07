// The gate limits the number of threads that run goroutines without a P. At the limit the gate closes: goroutines that
// have not begun ("newcomers") begin one at a time (sched/newcomers.cpp). After one that turns out to compute, the next
// suspect, or the next of all, has to wait: for 10 ms at first, as behind one that computes on a P, and longer the more
// compute, up to a second.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// A newcomer that has lost its P, and with it the turn, if it had that.
struct defendant {
  M* m = nullptr;              // the M that runs it; null: there is no defendant
  std::uint32_t regained = 0;  // M::regained at that time
  const void* kind = nullptr;  // G::spawn_pc
  bool had_turn = false;
};

// Used by sysmon only.
class gate {
 public:
  // True if the gate is closed and newcomers wait, so that sysmon must go on looking.
  bool shall_open() const noexcept;

  // Called in each round. took: a P was taken from a goroutine since the last look. d: such a goroutine that had just
  // begun; if it had the turn, the gate keeps the turn from here on. turn: a goroutine that blocks in a call had the
  // turn, and the gate keeps it as well.
  void look(nanos now, bool took, const defendant& d, bool turn) noexcept;

 private:
  enum class verdict : std::uint8_t { none_yet, blocks, computes };
  void begin_trial(nanos now, const defendant& d) noexcept;
  verdict judge(nanos now) noexcept;
  void open() noexcept;
  void let_begin(nanos now) noexcept;  // lets those begin that need not wait
  void warn() noexcept;

  bool closed_ = false;
  bool keeps_turn_ = false;
  defendant on_trial_;
  std::uint32_t untried_ = 0;  // other newcomers that lost their Ps during the trial, without the turn
  nanos trial_began_ = 0, time_before_ = 0;
  thread_use use_;  // of the thread that is on trial
  bool warned_ = false;
  nanos suspects_wait_until_ = 0, all_wait_until_ = 0;
};

}  // namespace weft::rt
