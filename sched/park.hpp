// The one funnel for all blocking: park and ready.
//
// park(): the calling goroutine (or foreign thread) stops. `commit` runs after the goroutine has left its stack, and
// publishes it (unlocks the channel that holds its waiter, adds its timer). From then on any party that finds it may
// claim it (the wake word, runtime/g.hpp) and ready() it. A commit that finds that there is no need to sleep calls
// ready() itself.
//
// All functions are called inside the runtime (enter.hpp). `m` is null on a foreign thread.
#pragma once

#include "sched/enter.hpp"
#include "sched/runqueues.hpp"

namespace weft::rt {

// Returns the M on which the goroutine goes on.
[[nodiscard]] M* park(M* m, after_switch commit, void* arg, wait_reason why) noexcept;

// The same with a time limit: the wait ends at `deadline` (nanotime) unless another party claims `ticket` first.
// *timed_out says which. `commit` gives back a lock that the goroutine takes first when it is woken, or is null. Throws
// std::bad_alloc before anything has happened.
[[nodiscard]] M* park_until(M* m, wait_ticket ticket, after_switch commit, void* arg, wait_reason why, nanos deadline,
                            bool* timed_out);

// As park_until, for a wait that can be ended only by a run() that still goes on (for a timer's value). On a foreign
// thread the wait also ends, with *timed_out set, within foreign_look_again of the end of run number `run`.
[[nodiscard]] M* park_until_run_ends(M* m, std::uint64_t run, wait_ticket ticket, after_switch commit, void* arg,
                                     wait_reason why, nanos deadline, bool* timed_out);

// A run() may end while a foreign thread waits for one of its goroutines or timers, and nobody is left to say so. So
// the thread looks again this often.
inline constexpr nanos foreign_look_again = 20 * millisecond;

// For a wait that other parties find under a lock: the caller holds the lock, and the commit gives it back.
inline void release_after_switch(G*, void* held) noexcept { static_cast<lock*>(held)->release_lock(); }
[[nodiscard]] inline M* park(M* m, lock& held, wait_reason why) noexcept {
  return park(m, release_after_switch, &held, why);
}
[[nodiscard]] inline M* park_until(M* m, wait_ticket ticket, lock& held, wait_reason why, nanos deadline,
                                   bool* timed_out) {
  return park_until(m, ticket, release_after_switch, &held, why, deadline, timed_out);
}

// For a function that the program calls, or one that such a function calls last. Runs `body`, which may wait, and which
// leaves the runtime at its end. Returns what `body` returns, by a jump that the processor predicts right
// (runtime/way_back.hpp).
template <class F>
[[gnu::always_inline]] inline auto with_predicted_return(F body) {
  if (M* m = this_m()) m->left.from_call = __builtin_return_address(0);
  auto value = body();
  const M* m = this_m();
  return m ? come_back(m->left.from_call, value) : value;
}
// The same for a caller inside the runtime, which this function leaves. `body` takes the M by reference, and stores the
// present one there.
template <class F>
[[gnu::always_inline]] inline auto with_predicted_return(M* m, F body) {
  if (m) m->left.from_call = __builtin_return_address(0);
  auto value = body(m);
  leave_runtime(m);
  return m ? come_back(m->left.from_call, value) : value;
}

// Makes g, which the caller has claimed, runnable: it runs as soon as a P gets to it, and it is next on this P; with
// if_free only if no other goroutine is. Threads without a P may call it, too. If g is a foreign thread, it is woken.
// Without prefetch: for one of many, since what is fetched now would leave the cache before its turn.
void ready_without_prefetch(M* m, G* g, run_next when = run_next::always) noexcept;
inline void ready(M* m, G* g, run_next when = run_next::always) noexcept {
  __builtin_prefetch(g->context);  // the top of its stack
  ready_without_prefetch(m, g, when);
}
inline void ready(G* g) noexcept { ready(this_m(), g); }

// Readies several goroutines. Each goes to the tail of this P's queue; or of the global one, if there is no P or no
// room, or if others are there already.
void ready_all(g_list& gs) noexcept;
// The same, by p's owner, but returns the first of them, which it runs at once. Null if there is none.
G* ready_all_but_first(P* p, g_list& gs) noexcept;

// Suspends the calling goroutine, and the M goes by its scheduler's loop. The caller has set the goroutine's state, or
// `commit` sets it.
[[nodiscard]] M* suspend(M* m, after_switch commit, void* arg) noexcept;

// Yields: everything that is runnable now gets its turn first.
[[nodiscard]] M* yield_now(M* m) noexcept;

// The calling goroutine has ended. If the next one begins on its stack, the runtime has been left. If not, the caller
// is still inside, and switches at once.
last_step end_goroutine() noexcept;

}  // namespace weft::rt
