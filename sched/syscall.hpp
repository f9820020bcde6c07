// Calls that may block: the P is free for others meanwhile (syscall.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Outside the runtime, by a goroutine, which keeps the M; nothing on other threads. Between the two it has no P for
// sure. A call into weft between them takes one again, as exit_syscall does.
void enter_syscall() noexcept;
void exit_syscall() noexcept;
M* finish_syscall(M* m) noexcept;  // from enter_slow

[[nodiscard]] bool retake_syscall(P* p) noexcept;  // true: the caller owns p

// Somebody without a P has made work, and none idles: one that is left behind in a call shall be taken soon.
void want_p_of_a_call() noexcept;

}  // namespace weft::rt
