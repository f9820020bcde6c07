// Scheduling latency: how long goroutines that were started or woken, or came back without a P, are runnable before
// they run. One in 64 is marked and stamped; whoever dispatches it counts the time, in the histogram of its P. The
// others pay for a look at a counter that is counted anyway, and at a byte that each dispatch looks at anyway
// (G::marks). Those that yield are left out: it would cost more than the rest of a yield.
#pragma once

#include "runtime/deadline_clock.hpp"
#include "sched/scheduler.hpp"

namespace weft::rt {

// g is becoming runnable, and belongs to the caller. nth: a number that grows by one with each that does so in the same
// way.
void start_timing(G* g) noexcept;
inline bool is_timed(std::uint64_t nth) noexcept { return nth % 64 == 0; }
inline void time_one_in_64(G* g, std::uint64_t nth) noexcept {
  if (WEFT_UNLIKELY(is_timed(nth))) start_timing(g);
}

// g, which is about to run on p, may be marked.
void count_latency(P* p, G* g) noexcept;

}  // namespace weft::rt
