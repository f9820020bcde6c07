// Taking a P from an M that is in user code (preempt.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Called under sched.mutex:
[[nodiscard]] bool detach_running(P* p) noexcept;  // takes p from an M in user code. True: the caller owns p
void forget_detached(M* m) noexcept;               // m came back
void note_detached(M* m, bool computes) noexcept;  // notes what m does without a P

}  // namespace weft::rt
