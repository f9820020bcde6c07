// Finding work: what an M does that has nothing to run (find.cpp).
#pragma once

#include "sched/scheduler.hpp"

#include <cstdint>

namespace weft::rt {

// How long an M with local work leaves timers and the poller alone at most. Also how long a dozer expects an M without
// work that found something in the poller to look there again (doze.cpp).
inline constexpr nanos look_every = 100 * microsecond;

// Where a goroutine was found.
enum class place : std::uint8_t {
  queue,
  next,            // runnext: it runs in the time slice of the goroutine that made it ready
  next_elsewhere,  // runnext of another P
};

// Returns the goroutine that m runs next. Null: the runtime ends, or m's thread ends.
G* find_runnable(M* m, place* from) noexcept;

// True if m has to go by find_runnable before it runs the next goroutine of its P: a request was made, or it is time to
// look at timers and the poller, or at the global queue.
inline bool dispatcher_is_due(const M* m, const P* p) noexcept {
  if (m->requests.load(relaxed) != 0) return true;
  std::uint64_t look = p->next_look.load(relaxed);
  if (look != 0 && cpu_ticks() >= look) return true;
  return sched.global_size.load(relaxed) != 0 && is_turn_of_global_queue(p);
}

}  // namespace weft::rt
