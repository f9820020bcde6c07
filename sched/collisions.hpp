// What channels count where two Ps may be in each other's way (help_trial.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// A value went through a channel at once.
inline void count_value(M* m) noexcept { m->values.store(m->values.load(relaxed) + 1, relaxed); }

// The channel was another P's just then. With many of them m's dispatcher shall look.
inline void count_collision(M* m) noexcept {
  const std::uint64_t n = m->collisions.load(relaxed) + 1;
  m->collisions.store(n, relaxed);
  if (n % collisions_per_look != 0) return;
  m->collides = true;
  if (P* p = p_of(m)) p->next_look.store(1, relaxed);
}

}  // namespace weft::rt
