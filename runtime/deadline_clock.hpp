// The clock for deadlines that are set far more often than they are waited for: less than half the price
// of the real one.
//
// Most of a look at the clock is the fence before the processor's counter is read. Here a thread goes on from its last
// look by the counter alone, without a fence, for a microsecond. What it says is never before the thread's last look at
// the real clock, and at most 50 ns after a look that follows at once: by what a look may take longer than the
// shortest. Compared with what the thread knows from elsewhere it may be too early, by less than `slack`:
//   - A counter that is read without a fence may be older than what was read from memory before it, by as long as a
//     read from memory takes: another thread's time, say, from a cache line for which that thread contends. A little
//     more than 500 ns were seen, once in a million reads.
//   - The kernel may let its clock run faster than it did when the counter was measured, so as to catch up with the
//     world's: by 8 % of the microsecond, which is chrony's limit.
// So who is woken for a deadline that was set by this clock is woken `slack` after it.
#pragma once

#include "runtime/clock.hpp"

#include <algorithm>
#include <cstdint>

namespace weft::rt {

// What is known of cpu_ticks and of looks at the clock, in ticks; constants once a runtime has run.
struct tick_rate {
  std::uint64_t per_us = 1000;
  // For how many ticks a thread goes on by the counter; 0: never, as the clock does not follow the counter.
  std::uint64_t span = 0;
  std::uint64_t ns_shifted = 0;  // of one tick, rounded up, times 2^32
  std::uint64_t look = 0;        // what a look takes at least
};
inline constinit tick_rate cpu_tick_rate;

// The clock, and what the counter said at that time; where the look took much longer than the shortest, nobody knows
// when in between the clock was read. A little longer all take where two threads share a core, or the caches are busy.
struct clock_look {
  nanos clock;
  std::uint64_t count;
  std::uint64_t took;

  bool is_sure() const noexcept { return took <= cpu_tick_rate.look + cpu_tick_rate.per_us / 50; }
};
inline clock_look look_at_clock() noexcept {
  wait_for_loads();  // else the clock does, after the counter was read, and it is not known for how long
  const std::uint64_t before = cpu_ticks();
  const nanos clock = nanotime();
  // The clock was hardly read so early: a look at it just before is never later.
  return {clock, before + cpu_tick_rate.look / 4, cpu_ticks() - before};
}

// Measures them, once. Takes a fraction of a millisecond; nobody else may use them yet.
void measure_ticks() noexcept;

// One thread's.
class deadline_clock {
 public:
  static constexpr nanos slack = microsecond;

  // Never less than it said before.
  nanos now() noexcept { return at(cpu_ticks()); }

  // At what the counter just said.
  nanos at(std::uint64_t count) noexcept {
    // A counter that was set back, as that of a machine that was moved, has passed more than any span.
    const std::uint64_t passed = count - looked_at_;
    if (passed >= cpu_tick_rate.span) return look();
    return said_ = std::max(said_, base_ + static_cast<nanos>((passed * cpu_tick_rate.ns_shifted) >> 32));
  }

 private:
  nanos look() noexcept {
    const clock_look l = look_at_clock();
    base_ = l.clock;
    looked_at_ = l.is_sure() ? l.count : l.count - cpu_tick_rate.span;  // not sure: the next one looks again
    return said_ = std::max(said_, base_);
  }

  std::uint64_t looked_at_ = 0;
  nanos base_ = 0;  // the clock then
  nanos said_ = 0;
};

}  // namespace weft::rt
