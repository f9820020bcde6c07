// Goroutines that have a thread to themselves: lock_os_thread.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Called by m, whose locked goroutine waits: gives m's P up, and sleeps until m is passed a P to run that goroutine.
void stop_locked_m(M* m) noexcept;
// Called by m, which picked g, a goroutine that is locked to another M: passes m's P on to that M, and sleeps.
void start_locked_m(M* m, G* g) noexcept;
// While out of threads: passes an idle P to an M whose locked goroutine is in the global queue.
void start_some_locked_m() noexcept;
// *error: 0, or why there is no thread left for the other goroutines.
[[nodiscard]] M* lock_os_thread(M* m, int* error) noexcept;
void unlock_os_thread(M* m) noexcept;
// The goroutine that m runs ends while it is locked: m leaves when it is next in its scheduler's loop.
void end_locked(M* m) noexcept;

}  // namespace weft::rt
