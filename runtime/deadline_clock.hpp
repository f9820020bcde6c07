// The clock for deadlines that are set far more often than they are waited for. It costs less than half of what the
// real clock costs.
//
// Most of a look at the real clock is the fence before the processor's counter is read. With this clock, a thread goes
// on from its last look by the counter alone, without a fence, for a microsecond. The time it gets is never before its
// last look at the real clock, and at most 50 ns after a look that follows at once, because a look may take that much
// longer than the shortest one. Compared with what the thread knows from elsewhere, the time may be too early, by less
// than `slack`:
//   - A counter that is read without a fence may be older than what was read from memory before it, by as long as a
//     read from memory takes. That may be another thread's time, say, from a cache line for which that thread contends.
//     A little more than 500 ns were seen, once in a million reads.
//   - The kernel may let its clock run faster than it did when the counter was measured, to catch up with the world's:
//     by 8 % of the microsecond, which is chrony's limit.
// So a goroutine that waits for a deadline that was set by this clock is woken `slack` after it.
#pragma once

#include "runtime/clock.hpp"

#include <algorithm>
#include <cstdint>

namespace weft::rt {

// What is known about cpu_ticks and about looks at the clock, in ticks. Constant once a runtime has run.
struct tick_rate {
  std::uint64_t per_us = 1000;
  // For how many ticks a thread goes on by the counter; 0: not at all, because the clock does not follow the counter.
  std::uint64_t span = 0;
  std::uint64_t ns_shifted = 0;  // nanoseconds of a tick times 2^32, rounded up
  std::uint64_t look = 0;        // what a look at the clock takes at least
};
inline constinit tick_rate cpu_tick_rate;

// A look: the clock, and what the counter said at that time. If the look took much longer than the shortest one, nobody
// knows when within it the clock was read. All looks take a little longer where two threads share a core, or the caches
// are busy.
struct clock_look {
  nanos clock;
  std::uint64_t count;
  std::uint64_t took;

  bool is_sure() const noexcept { return took <= cpu_tick_rate.look + cpu_tick_rate.per_us / 50; }
};
inline clock_look look_at_clock() noexcept {
  wait_for_loads();  // otherwise nanotime() waits, after the counter was read, and nobody knows for how long
  const std::uint64_t before = cpu_ticks();
  const nanos clock = nanotime();
  // The clock was hardly read as early as that. So a look at the clock is never later than a time that is counted from
  // here just after it.
  return {clock, before + cpu_tick_rate.look / 4, cpu_ticks() - before};
}

// Measures cpu_tick_rate, once. Takes a fraction of a millisecond; no other thread may use the rate yet.
void measure_ticks() noexcept;

// Belongs to one thread.
class deadline_clock {
 public:
  static constexpr nanos slack = microsecond;

  // Never goes back.
  nanos now() noexcept { return at(cpu_ticks()); }

  // The same, for a caller that has just read the counter.
  nanos at(std::uint64_t count) noexcept {
    // If the counter was set back, as when a machine was moved, `passed` is larger than any span.
    const std::uint64_t passed = count - looked_at_;
    if (passed >= cpu_tick_rate.span) return look();
    return said_ = std::max(said_, base_ + static_cast<nanos>((passed * cpu_tick_rate.ns_shifted) >> 32));
  }

 private:
  nanos look() noexcept {
    const clock_look l = look_at_clock();
    base_ = l.clock;
    looked_at_ = l.is_sure() ? l.count : l.count - cpu_tick_rate.span;  // not sure: the next call looks again
    return said_ = std::max(said_, base_);
  }

  std::uint64_t looked_at_ = 0;
  nanos base_ = 0;  // the clock at that look
  nanos said_ = 0;
};

}  // namespace weft::rt
