// Scheduling latency: how long goroutines that were started or woken, or that came back without a P, are runnable
// before they run. One goroutine in 64 is marked and stamped; the M that dispatches it counts the time in its P's
// histogram. The other goroutines pay for a test of a counter that is kept anyway, and of a byte that each dispatch
// reads anyway (G::marks). Goroutines that yield are left out: timing them would cost more than the rest of a yield.
#pragma once

#include "runtime/deadline_clock.hpp"
#include "sched/scheduler.hpp"

namespace weft::rt {

// Stamps and marks g, which is becoming runnable and belongs to the caller. `nth` grows by one with each goroutine that
// becomes runnable in the same way.
void start_timing(G* g) noexcept;
inline bool is_timed(std::uint64_t nth) noexcept { return nth % 64 == 0; }
inline void time_one_in_64(G* g, std::uint64_t nth) noexcept {
  if (WEFT_UNLIKELY(is_timed(nth))) start_timing(g);
}

// Counts the latency of g, which is about to run on p, if g is marked.
void count_latency(P* p, G* g) noexcept;

}  // namespace weft::rt
