// Stealing: what an M that has no work takes from other Ps (steal.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// crumbs_too: the thief also takes goroutines that are hardly worth a theft.
enum class thief_takes : bool { work, crumbs_too };

struct steal_result {
  G* g = nullptr;  // to run next; more may be in the thief's ring
  bool was_next = false;
  bool ran_timers = false;
};

// Called by an M that has run what it took last, and finds nothing else: judges whether that theft was worth it.
void judge_last_theft(M* m, const P* mine) noexcept;

// Called by m, which holds `mine`, whose queue is empty. *now is read when it is first needed.
steal_result steal_work(M* m, P* mine, thief_takes what, nanos* now);

// Called by the dozer when it begins to stay away, or no longer does: what is ready at all Ps that run counts as `s`.
void hold_all_to_be(spoils s) noexcept;

// Called by the dozer. True if p itself will run all that is ready there, sooner than a thief would.
bool serves_itself(P* p) noexcept;

}  // namespace weft::rt
