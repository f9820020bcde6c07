// Goroutines that have a thread for themselves: lock_os_thread.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// By m, whose goroutine waits: gives its P up, and sleeps until it is passed one for it.
void stop_locked_m(M* m) noexcept;
// By m, which picked another M's goroutine: passes its P on to that M, and sleeps.
void start_locked_m(M* m, G* g) noexcept;
void start_some_locked_m() noexcept;  // while out of threads: one whose goroutine is in the global queue
[[nodiscard]] M* lock_os_thread(M* m, int* error) noexcept;  // *error: 0, or why no thread is left for the others
void unlock_os_thread(M* m) noexcept;

}  // namespace weft::rt
