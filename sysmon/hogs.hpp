// WEFT_DEBUG=hogs=100ms: a line about each goroutine that holds its thread for longer than that without a call into
// weft: it computes, or it is in a system call that it did not announce by blocking().
//
// The line comes while the goroutine still holds the thread, since it may never give it back; one for each time, and
// not more than some in a second.
#pragma once

#include "sched/scheduler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weft::rt {

// By sysmon only.
class hog_watch {
 public:
  explicit hog_watch(nanos threshold) noexcept : threshold_(threshold) {}  // 0: it does nothing

  // Such a one loses its P also if nobody else wants that: only without one its goroutine's number and name may be
  // read.
  bool is_one(nanos held) const noexcept { return threshold_ != 0 && held >= threshold_; }

  // Under sched.mutex: m, which runs the same goroutine since `since`, has just lost its P.
  void lost_its_p(M* m, nanos since) noexcept;

  // Reports those whose time has come.
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
  nanos next_ = forever;   // nobody is due before
  std::size_t lines_ = 0;  // in the present second
  nanos second_ends_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace weft::rt
