// Finding work: what an M does that has nothing to run (find.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

G* find_runnable(M* m, bool* inherit) noexcept;
void time_is_up(P* p) noexcept;   // by p's owner: a time slice was used up, so the next one that is woken may go first
nanos earliest_timer() noexcept;  // of all Ps; 0: none

}  // namespace weft::rt
