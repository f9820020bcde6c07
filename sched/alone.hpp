// While all other Ps idle, a P's queue is used, and locks of goroutines are taken (runtime/lock.hpp: goroutine_lock),
// by plain loads and stores. The essay is in alone.cpp.
#pragma once

#include "runtime/lock.hpp"
#include "sched/p.hpp"

#include <cstdint>

namespace weft::rt {

struct M;

// --- for the scheduler

// While the world is stopped, or nothing runs yet: there are so many Ps.
void begin_alone(std::uint32_t procs) noexcept;
// By p's owner: it may be alone by now. So many dispatches apart.
WEFT_NOINLINE void look_whether_alone(P* p) noexcept;
inline void look_now_and_then_whether_alone(P* p) noexcept {
  if (dispatches(p) >= p->alone_look_at) look_whether_alone(p);
}

// A P is taken from the idle list. Under sched.mutex.
void others_come() noexcept;

// By m, which has taken a P, before it uses that, without a lock: waits until nobody takes himself to be alone who is
// not. It does not if the run() ends: locks are not taken plainly then any more, and nobody steals.
void until_all_are_aware(const M* m) noexcept;
// By m, in the runtime, which waits for other Ms. Under sched.mutex.
void says_it_is_aware(const M* m) noexcept;

// S2b: by who holds no P, between what it tells those who make work ready, and its look at their queues.
void barrier_to_who_is_alone() noexcept;

// --- for who takes goroutine_locks

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
// When it returns nobody takes a lock plainly any more in this run(). For who is about to take one himself.
void end_alone() noexcept;

}  // namespace weft::rt
