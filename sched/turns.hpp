// Turns: which goroutine comes first where several sources have one for a P (turns.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// All are called by p's owner.

// True if a goroutine that was woken just now may run ahead of those that wait.
bool may_pass(P* p, nanos now) noexcept;
void note_slice_used_up(P* p) noexcept;  // a time slice was used up: the next goroutine that is woken may pass

// Take a goroutine that has waited for long, from the global queue or from p's ring. Null if none has.
G* overdue_one(P* p, nanos now) noexcept;
G* overdue_in_ring(P* p, nanos now) noexcept;

// True if the global queue comes first now. Not if a timer was due, which goes first; then at the next look.
bool takes_turn_of_global_queue(P* p, bool ran_timer) noexcept;

}  // namespace weft::rt
