// Finds goroutines that block in calls that were not announced by blocking(). Such a goroutine holds its P, and those
// in the P's queue wait until its time slice is over: for that long it passes for a goroutine that computes.
//
// It can be recognised sooner: its thread has used no processor time for a while, and does not want a processor. That
// takes two looks at the thread, so threads are watched one after the other, and only while no P idles that could steal
// the work. Each watch in vain doubles the number of goroutines that are passed over before the next watch, up to 16.
// Finding one that blocks resets that number.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Used by sysmon only. In each of its rounds it calls gone_on or blocks for each P that is `running`, and then
// end_of_round.
class call_watch {
 public:
  // p has begun another time slice since the last round. The goroutine that runs in it may be watched from here on.
  void gone_on(const P* p, std::uint64_t tick, nanos now) noexcept;

  // p is still in the same time slice. True: its goroutine is watched, and it blocks.
  bool blocks(const P* p, std::uint64_t tick, nanos now) noexcept;

  void end_of_round(nanos now) noexcept;

  // When it will be known whether the goroutine that is watched blocks; forever: none is watched.
  nanos next_look() const noexcept { return watched_ ? since_ + long_enough : forever; }

 private:
  void in_vain() noexcept;

  static constexpr nanos long_enough = 100 * microsecond;

  const P* watched_ = nullptr;
  std::uint64_t tick_ = 0;  // the time slice that is watched
  int tid_ = 0;             // the thread that is watched
  nanos since_ = 0;
  nanos used_ = 0;          // the processor time that the thread had used at since_
  std::uint32_t turn_ = 0;  // the first P that may be watched next
  int looks_ = 0, looks_apart_ = 1;
};

}  // namespace weft::rt
