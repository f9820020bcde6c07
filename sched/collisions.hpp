// What channels count where two Ps may be in each other's way (help_trial.cpp). m holds a P.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// A value went through a channel at once.
inline void count_value(const M* m) noexcept { m->p.load(relaxed)->values.add(); }

// Somebody else had a channel's lock. If that is often so m's dispatcher shall look.
inline void count_collision(M* m) noexcept {
  P* p = m->p.load(relaxed);
  if (p->collisions.add() % collisions_per_look != 0) return;
  m->collides = true;
  p->next_look.store(1, relaxed);
}

}  // namespace weft::rt
