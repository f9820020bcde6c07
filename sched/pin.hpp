// Goroutines that go on on one thread, which runs others, too.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Inside the runtime, by the goroutine that m runs; they nest. unpin by another one is fatal.
void pin(M* m) noexcept;
void unpin(M* m) noexcept;
void deliver_pinned(M* m, G* g) noexcept;  // m has picked g, which is another M's; m may be without a P then
G* take_pinned(M* m) noexcept;             // one that is ready, or null

// Under sched.mutex: some are ready; false: they are in the global queue, as no P idles.
bool take_p_for_pinned(M* m) noexcept;

}  // namespace weft::rt
