// How many threads may run goroutines without a P. Beyond that, goroutines that have not begun do so one at a time
// (sched/newcomers.cpp), and the longer one after the other the more of them keep their threads.
#pragma once

#include "runtime/clock.hpp"

namespace weft::rt {

// By sysmon only.
class gate {
 public:
  // Somebody waits for a look.
  bool shall_open() const noexcept;

  // took: a P was taken from a goroutine since the last look; hog_had_turn: from a newcomer that computes, and the turn
  // with it, which the gate keeps now; surprise: it was no suspect.
  void look(nanos now, bool took, bool hog_had_turn, bool surprise) noexcept;

 private:
  void open() noexcept;
  void make_wait(nanos until, bool everybody) noexcept;
  void let_begin() noexcept;
  void warn() noexcept;

  static constexpr nanos first_wait = 100 * millisecond;
  bool closed_ = false;
  bool keeps_turn_ = false;
  bool warned_ = false;
  nanos wait_ = first_wait;
  nanos wait_until_ = 0;
};

}  // namespace weft::rt
