// The beginning and the end of a run() (lifecycle.cpp), and the deadlock check (dead.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// True if run number `run` is over or is ending. A foreign thread asks this, since it may stand still while one run()
// ends and the next begins: what it began or took in the run() that is over is of no use any more. Without sched.mutex
// the answer may be out of date.
bool is_over(std::uint64_t run) noexcept;
void abandon(G* g) noexcept;                           // g never runs again
void start_runtime(const scheduler_options& options);  // throws std::system_error, std::bad_alloc, std::logic_error
void stop_runtime() noexcept;                          // called by the thread that called start_runtime
void let_next_run_begin() noexcept;                    // called after stop_runtime
void check_dead() noexcept;                            // called under sched.mutex
// Throws std::logic_error if no run() goes on, or if it is ending and the caller is not a goroutine.
void throw_if_not_running_slow(const char* what);
inline void throw_if_not_running(const char* what) {
  if (WEFT_UNLIKELY(!sched.running.load(acquire) || sched.shutting_down.load(relaxed))) throw_if_not_running_slow(what);
}

}  // namespace weft::rt
