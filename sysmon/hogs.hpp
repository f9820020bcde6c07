// WEFT_DEBUG=hogs=100ms: a line about each goroutine that holds its thread for longer than that without a call into
// weft: it computes, or it is in a system call that it did not announce by blocking().
//
// The line comes while the goroutine still holds the thread, since it may never give it back; one for each time, and
// not more than some in a second.
#pragma once

#include "sched/scheduler.hpp"

#include <array>

namespace weft::rt {

// By sysmon only.
class hog_watch {
 public:
  explicit hog_watch(nanos threshold) noexcept : threshold_(threshold) {}  // 0: it does nothing

  // Such a one loses its P also if nobody else wants that: only without one its goroutine's number and name may be read.
  bool is_one(nanos held) const noexcept { return threshold_ != 0 && held >= threshold_; }

  // Under sched.mutex: m, which runs the same goroutine since `since`, has just lost its P.
  void lost_its_p(M* m, nanos since) noexcept;

  // Reports those whose time has come. To be called before Ms that have ended are freed.
  void look(nanos now) noexcept;
  nanos next_look() const noexcept;

 private:
  // A goroutine on a thread without a P. It can neither end nor become another one before it gets a P again.
  struct hold {
    M* m;
    std::uint32_t regained;  // M::regained; another value: that time is over
    nanos since;
    int tid;
    std::uint64_t id;
    char name[sizeof G::name];
    const void* spawn_pc;
  };

  void print(const hold& h, nanos now) noexcept;

  const nanos threshold_;
  std::array<hold, 64> holds_;
  std::size_t count_ = 0;
  int lines_ = 0;  // in the present second
  nanos second_ends_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace weft::rt
