// Dozing: an M that was wanted and found nothing sleeps for a bounded time, and looks again (doze.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Called by m, which has given its P up, but counts as spinning. Returns true if it has a P again: there may be work.
bool doze(M* m) noexcept;

}  // namespace weft::rt
