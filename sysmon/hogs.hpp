// WEFT_DEBUG=hogs=100ms: prints a line about each goroutine that holds its thread for longer than that without a call
// into weft. Such a goroutine computes, or it is in a system call that it did not announce by blocking().
//
// The line is printed while the goroutine still holds its thread, since it may never give it back. There is one line
// for each time that a goroutine does so, but no more than lines_per_second.
#pragma once

#include "sched/scheduler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weft::rt {

// Used by sysmon only.
class hog_watch {
 public:
  explicit hog_watch(nanos threshold) noexcept : threshold_(threshold) {}  // 0: it does nothing

  // True if a goroutine that has held its thread for that long is to be reported. It loses its P then even if nobody
  // else wants that P: the number and the name of a goroutine may be read only while it has none.
  bool is_one(nanos held) const noexcept { return threshold_ != 0 && held >= threshold_; }

  // Called under sched.mutex: m, which has run the same goroutine since `since`, has just lost its P.
  void lost_its_p(M* m, nanos since) noexcept;

  // Called in each round. Reports the goroutines that are due.
  void look(nanos now) noexcept;
  nanos next_look() const noexcept { return left_out_ != 0 ? std::min(next_, second_ends_) : next_; }

 private:
  struct hold {
    nanos since;
    int tid;
    std::uint64_t id;
    char name[sizeof G::name];
    const void* spawn_pc;
  };
  static constexpr std::size_t lines_per_second = 10;

  std::size_t find_due(nanos now, hold* out, std::size_t most) noexcept;
  void print(const hold& h, nanos now) noexcept;

  const nanos threshold_;
  nanos next_ = forever;   // no goroutine is due before that
  std::size_t lines_ = 0;  // printed in the present second
  nanos second_ends_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace weft::rt
