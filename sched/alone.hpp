// While all other Ps idle, a P uses its queue, and takes the locks of goroutines (runtime/lock.hpp: goroutine_lock), by
// plain loads and stores. The essay is in alone.cpp.
#pragma once

#include "runtime/lock.hpp"
#include "sched/p.hpp"

#include <cstdint>

namespace weft::rt {

struct M;

// --- for the scheduler

// Called while the world is stopped, or while nothing runs yet: there are `procs` Ps from here on.
void begin_alone(std::uint32_t procs) noexcept;
// Called by p's owner, others_every dispatches apart: looks whether p is alone by now.
WEFT_NOINLINE void look_whether_alone(P* p) noexcept;
inline void look_now_and_then_whether_alone(P* p) noexcept {
  if (dispatches(p) >= p->alone_look_at) look_whether_alone(p);
}

// Called under sched.mutex when a P is taken from the idle list: the P that was alone no longer is.
void others_come() noexcept;

// Called by m without a lock, after it took a P and before it uses that P: waits until no M believes that it is alone
// when it is not. Does not wait if the run() ends: locks are no longer taken plainly then, and nobody steals.
void until_all_are_aware(const M* m) noexcept;
// Called by m under sched.mutex, when it waits inside the runtime for other Ms: m knows that it is no longer alone.
void says_it_is_aware(const M* m) noexcept;

// S2b: called by a thread that holds no P, after it has announced itself to those that make work ready (S2, D1) and
// before it looks at their queues (S3, D2).
void barrier_to_who_is_alone() noexcept;

// --- for threads that take goroutine_locks

// Written under sched.mutex. From `plain_thread_comes` on it never goes back.
enum class alone_ends : std::uint8_t { not_yet, with_this_run, plain_thread_comes, plain_thread_came };
inline constinit atomic<alone_ends> alone_ended{alone_ends::not_yet};

WEFT_NOINLINE void plain_thread_comes() noexcept;

// Called by each thread that is not weft's, before it takes a goroutine_lock.
inline void note_foreign_thread() noexcept {
  // acquire: the plain thread that came before us has waited for the Ms that took locks plainly.
  if (WEFT_UNLIKELY(alone_ended.load(acquire) != alone_ends::plain_thread_came)) plain_thread_comes();
}

// A run() begins: locks may be taken plainly again, unless a plain thread has come.
void may_be_alone_again() noexcept;
// For a thread that is about to take a goroutine_lock itself. When it returns, no M takes one plainly any more in this
// run().
void end_alone() noexcept;

}  // namespace weft::rt
