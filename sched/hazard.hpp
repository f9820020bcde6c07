// WEFT_DEBUG=hazard: every suspension comes back on another thread (hazard.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

bool must_migrate(const M* m, const G* g) noexcept;  // m has picked g: true if g was suspended on m, and is not tied
[[nodiscard]] M* suspend_in_hazard(M* m, after_switch commit, void* arg) noexcept;
void forget_held_locks() noexcept;  // forgets the locks that the goroutine before took on this thread

}  // namespace weft::rt
