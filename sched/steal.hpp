// Stealing: what an M that has no work takes from other Ps (steal.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// crumbs_too: also goroutines that are hardly worth a theft.
enum class thief_takes : bool { work, crumbs_too };

struct steal_result {
  G* g = nullptr;  // to run next; more may be in the thief's ring
  bool was_next = false;
  bool ran_timers = false;
};

// By an M that has run what it took last, and finds nothing else: was that worth it?
void judge_last_theft(M* m, const P* mine) noexcept;

// m holds `mine`, whose queue is empty. *now is read when it is first needed.
steal_result steal_work(M* m, P* mine, thief_takes what, nanos* now);

// By the dozer, who stays away, or does not any more: what is ready with all Ps that run.
void hold_all_to_be(spoils s) noexcept;

// By the dozer: p comes to all that is ready there by itself, sooner than it would be stolen.
bool serves_itself(P* p) noexcept;

}  // namespace weft::rt
