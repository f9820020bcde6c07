// The life of a run(): its beginning and its end (lifecycle.cpp), and the end of all progress (dead.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// That run() has ended, and what a foreign thread began or took in it is of no use any more: the thread may stand still
// while one run() ends and the next begins. Without sched.mutex the answer may be stale.
bool is_over(std::uint64_t run) noexcept;
void abandon(G* g) noexcept;                           // it never runs any more
void start_runtime(const scheduler_options& options);  // throws std::system_error, std::bad_alloc, std::logic_error
void stop_runtime() noexcept;                          // by the thread that started it: see lifecycle.cpp
void let_next_run_begin() noexcept;                    // afterwards
void check_dead() noexcept;                            // under sched.mutex
// std::logic_error: no run() is there, or it ends and the caller is no goroutine.
void throw_if_not_running_slow(const char* what);
inline void throw_if_not_running(const char* what) {
  if (WEFT_UNLIKELY(!sched.running.load(acquire) || sched.shutting_down.load(relaxed))) throw_if_not_running_slow(what);
}

}  // namespace weft::rt
