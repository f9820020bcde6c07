// Finding work: what an M does that has nothing to run (find.cpp).
#pragma once

#include "sched/scheduler.hpp"

#include <cstdint>

namespace weft::rt {

// Where a goroutine lay.
enum class place : std::uint8_t {
  queue,
  next,            // runnext: it goes on in the time slice of the one that made it ready
  next_elsewhere,  // runnext of another P
};

// Null: the runtime ends, or the M shall leave.
G* find_runnable(M* m, place* from) noexcept;
// By p's owner: a time slice was used up, so the next one that is woken may go first.
void note_slice_used_up(P* p) noexcept;

// Whether find_runnable has to be gone by before m runs what its P has next: somebody asked for something, or it is
// time to look at timers and the poller, or at the global queue.
inline bool dispatcher_is_due(const M* m, const P* p) noexcept {
  if (m->requests.load(relaxed) != 0) return true;
  std::uint64_t look = p->next_look.load(relaxed);
  if (look != 0 && cpu_ticks() >= look) return true;
  return sched.global_size.load(relaxed) != 0 && is_turn_of_global_queue(p);
}

nanos earliest_timer() noexcept;                // of all Ps; 0: none
bool wants_to_be_on_time(nanos when) noexcept;  // somebody, for a timer that is due then or later

}  // namespace weft::rt
