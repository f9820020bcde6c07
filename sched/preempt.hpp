// Taking a P from an M that is in user code (preempt.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Under sched.mutex:
[[nodiscard]] bool detach_running(P* p) noexcept;  // takes p from an M in user code; the caller owns p then
void forget_detached(M* m) noexcept;               // it came back
void note_detached(M* m, bool computes) noexcept;  // what it does without a P

}  // namespace weft::rt
