// A goroutine in runnext goes on in the time slice of the one before it. Two that make each other runnext share one,
// and so do those that timers start one after the other. So that it does not get long, now and then the one at the head
// of the ring comes first, or of the global queue: to that the scheduler comes by only once in so many time slices.
#pragma once

#include "sched/proc.hpp"

#include <cstdint>

namespace weft::rt {

// From goroutine to goroutine, and by the scheduler's loop, where timers run.
inline constexpr std::uint64_t inherit_at_most = 128, inherit_in_loop_at_most = 16;

inline bool others_come_first(const P* p, std::uint64_t at_most) noexcept {
  return p->count.inherited.get() % at_most == at_most - 1;
}

// Who comes before runnext then; null: nobody. The caller owns p.
inline G* take_other(P* p) noexcept {
  p->count.inherited.add();
  G* g = p->runq.get_from_ring();
  if (!g && sched.global_size.load(relaxed) != 0) {
    lock_guard hold(sched.mutex);
    g = global_get(p, 0);
  }
  return g;
}

}  // namespace weft::rt
