// System calls that may block: the P is free for other Ms meanwhile (syscall.cpp).
#pragma once

#include "runtime/traceback.hpp"
#include "sched/scheduler.hpp"

namespace weft::rt {

// Called outside the runtime, by a goroutine, which stays on its M. They do nothing on other threads. Between the two
// the goroutine may lose its P at any time. If it calls weft in between, it takes a P again, as exit_syscall does.
// `from` is for dumps: the caller's caller, which waits until exit_syscall has returned.
void enter_syscall(const call_site& from) noexcept;
void exit_syscall() noexcept;
M* finish_syscall(M* m) noexcept;  // called by enter_slow

// Takes the trace of a goroutine in a system call. All Ps must stand still: then the goroutine may come back from the
// call, but does not return to its caller.
void trace_in_syscall(const G* g, trace* out) noexcept;

// Takes p from an M that is in a system call. True: the caller owns p.
[[nodiscard]] bool retake_syscall(P* p) noexcept;

// Called by a thread without a P that has made a goroutine ready, or has armed a timer, while no P idles: if a P was
// left behind in a system call, sysmon is hurried to take it.
void want_p_of_a_call() noexcept;

}  // namespace weft::rt
