// Finds goroutines that block in calls that nobody announced (blocking()). Such a one holds its P, and those in the P's
// queue wait until its time slice is over: that long it passes for one that computes.
//
// It can be told sooner: its thread has used no processor for a while, and does not want one. That takes two looks, so
// threads are watched one after the other, and only while no P idles that could steal the work. Each watch in vain
// doubles the number of those that are passed over before the next, up to 16; one that blocks resets it.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// By sysmon only. In each of its rounds, for each P that is `running`: one of the first two.
class call_watch {
 public:
  // p has gone on to another goroutine since the last round. That one may be watched from here on.
  void gone_on(const P* p, std::uint64_t tick, nanos now) noexcept;

  // p has not gone on. True: its goroutine blocks.
  bool blocks(const P* p, std::uint64_t tick, nanos now) noexcept;

  void end_of_round(nanos now) noexcept;

  // When it will be known of the one that is watched.
  nanos next_look() const noexcept { return watched_ ? since_ + long_enough : forever; }

 private:
  void in_vain() noexcept;

  static constexpr nanos long_enough = 100 * microsecond;

  const P* watched_ = nullptr;
  std::uint64_t tick_ = 0;  // its goroutine's time slice
  int tid_ = 0;             // its thread
  nanos since_ = 0;
  nanos used_ = 0;          // of the processor, by then
  std::uint32_t turn_ = 0;  // the first P that may be next
  int looks_ = 0, looks_apart_ = 1;
};

}  // namespace weft::rt
