// Goroutines that stay on one thread, which runs other goroutines, too.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Called inside the runtime, by the goroutine that m runs. Pins nest. An unpin by another goroutine is fatal.
void pin(M* m) noexcept;
void unpin(M* m) noexcept;
// Called by m, which has picked g, a goroutine that is pinned to another M. Afterwards m may be without a P.
void deliver_pinned(M* m, G* g) noexcept;
// Returns a goroutine that is pinned to m and ready, or null.
G* take_pinned(M* m) noexcept;

// Called under sched.mutex, by m, which is about to idle while goroutines that are pinned to it are ready. Takes an
// idle P. False: no P idles, and these goroutines were put into the global queue.
bool take_p_for_pinned(M* m) noexcept;

}  // namespace weft::rt
