// Taking a P from an M that is in user code (preempt.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Called under sched.mutex:
[[nodiscard]] bool detach_running(P* p) noexcept;  // takes p from an M in user code. True: the caller owns p
void forget_detached(M* m) noexcept;               // m came back
void note_detached(M* m, bool computes) noexcept;  // notes what m does without a P

// Called inside the runtime, when the goroutine that runs on m has made one ready that is not to wait for a whole time
// slice. If there is one P only, the same goroutine still runs a millisecond later, and another one waits, sysmon takes
// the P as at the end of a time slice. If sysmon pauses for longer at that moment, it does so at its next look, and
// looks more often from then on.
void shorten_slice(M* m, nanos now) noexcept;
nanos hurry_since(const P* p) noexcept;  // for sysmon: since when that holds; forever: it does not

}  // namespace weft::rt
