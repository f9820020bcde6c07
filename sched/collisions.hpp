// What channels count to find out whether two Ps are in each other's way (help_trial.cpp). m holds a P.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Counts a value that went through a channel without a wait.
inline void count_value(const M* m) noexcept { m->p.load(relaxed)->values.add(); }

// Counts that another thread held a channel's lock. If that happens often, m's dispatcher has to look (find.cpp:
// leaves).
inline void count_collision(M* m) noexcept {
  P* p = m->p.load(relaxed);
  if (p->collisions.add() % collisions_per_look != 0) return;
  m->collides = true;
  p->next_look.store(1, relaxed);
}

}  // namespace weft::rt
