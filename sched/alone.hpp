// While there is one P, locks of goroutines are taken by plain stores (runtime/lock.hpp: goroutine_lock), until a plain
// thread comes. The essay is in alone.cpp.
#pragma once

#include "runtime/lock.hpp"

namespace weft::rt {

// Written under sched.mutex. From `plain_thread_comes` on it is for good.
enum class alone_ends : std::uint8_t { not_yet, with_this_run, plain_thread_comes, plain_thread_came };
inline constinit atomic<alone_ends> alone_ended{alone_ends::not_yet};

WEFT_NOINLINE void plain_thread_comes() noexcept;

// By each thread that is not weft's, before it takes a goroutine_lock.
inline void note_foreign_thread() noexcept {
  // acquire: who has come before us has waited for those that took locks plainly.
  if (WEFT_UNLIKELY(alone_ended.load(acquire) != alone_ends::plain_thread_came)) plain_thread_comes();
}

// A run() begins, unless a plain thread has come.
void may_be_alone_again() noexcept;
// While the world is stopped, or nothing runs yet: there are so many Ps.
void begin_alone(std::uint32_t procs) noexcept;
// When it returns nobody takes a lock plainly any more in this run(). For who is about to take one himself.
void end_alone() noexcept;

}  // namespace weft::rt
