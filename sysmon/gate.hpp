// How many threads may run goroutines without a P. Beyond that, goroutines that have not begun do so one at a time
// (sched/newcomers.cpp), and the more of them keep their threads, the longer is the wait for the next: each doubles it,
// from 100 ms to a second.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// A newcomer that lost its P, and the turn with it, if it had that.
struct defendant {
  M* m = nullptr;              // whose goroutine it is; null: there is none
  std::uint32_t regained = 0;  // M::regained then
  const void* kind = nullptr;  // G::spawn_pc
  bool had_turn = false;
};

// By sysmon only.
class gate {
 public:
  // Somebody waits for a look.
  bool shall_open() const noexcept;

  // took: a P was taken from a goroutine since the last look; d: that had just begun, and the gate keeps the turn now.
  // turn: one that blocks had it, and the gate keeps it, too.
  void look(nanos now, bool took, const defendant& d, bool turn) noexcept;

 private:
  enum class verdict : std::uint8_t { none_yet, blocks, computes };
  void begin_trial(nanos now, const defendant& d) noexcept;
  verdict judge(nanos now) const noexcept;
  void open() noexcept;
  void let_begin(nanos now) noexcept;  // who need not wait
  void warn() noexcept;

  static constexpr nanos first_wait = 100 * millisecond;
  bool closed_ = false;
  bool keeps_turn_ = false;
  defendant on_trial_;
  std::uint32_t untried_ = 0;  // that have lost their Ps during the trial, without the turn
  nanos trial_began_ = 0, time_before_ = 0;
  bool warned_ = false;
  nanos wait_ = first_wait;
  nanos suspects_wait_until_ = 0, all_wait_until_ = 0;
};

}  // namespace weft::rt
