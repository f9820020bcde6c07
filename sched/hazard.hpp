// WEFT_DEBUG=hazard: every suspension comes back on another thread (hazard.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

bool must_migrate(const M* m, const G* g) noexcept;  // g, which m has picked, was suspended on m
[[nodiscard]] M* suspend_in_hazard(M* m, after_switch commit, void* arg) noexcept;
void forget_held_locks() noexcept;  // of what ran on this thread before

}  // namespace weft::rt
