// The one funnel for all blocking: park and ready.
//
// park(): the calling goroutine (or foreign thread) stops; `commit` runs after it has left its stack and publishes it
// (unlocks the channel that holds its waiter, adds its timer). From then on whoever finds it may claim it (the wake
// word, runtime/g.hpp) and ready() it. A commit that finds out that there is no need to sleep calls ready() itself.
//
// All functions: inside the runtime (enter.hpp). `m` is null on a foreign thread.
#pragma once

#include "sched/enter.hpp"

namespace weft::rt {

// Returns the M on which the goroutine goes on.
[[nodiscard]] M* park(M* m, after_switch commit, void* arg, wait_reason why) noexcept;

// The same with a time limit: the wait ends at `deadline` (nanotime) unless somebody claims `ticket` first.
// *timed_out says which. `commit` gives back a lock that whoever was woken takes first, or is null. Throws
// std::bad_alloc before anything happened.
[[nodiscard]] M* park_until(M* m, wait_ticket ticket, after_switch commit, void* arg, wait_reason why, nanos deadline,
                            bool* timed_out);

// As park_until, for a wait that only a run() that is still there can end (for a timer's value). On a foreign thread it
// also ends, with *timed_out set, within foreign_look_again of the end of run number `run`.
[[nodiscard]] M* park_until_run_ends(M* m, std::uint64_t run, wait_ticket ticket, after_switch commit, void* arg,
                                     wait_reason why, nanos deadline, bool* timed_out);

// A run() may end while a foreign thread waits for one of its goroutines or timers, and nobody is left to say so: it
// looks again now and then.
inline constexpr nanos foreign_look_again = 20 * millisecond;

// For a wait that others find under a lock, which the caller holds: the commit gives it back.
inline void release_after_switch(G*, void* held) noexcept { static_cast<lock*>(held)->release_lock(); }
[[nodiscard]] inline M* park(M* m, lock& held, wait_reason why) noexcept {
  return park(m, release_after_switch, &held, why);
}
[[nodiscard]] inline M* park_until(M* m, wait_ticket ticket, lock& held, wait_reason why, nanos deadline,
                                   bool* timed_out) {
  return park_until(m, ticket, release_after_switch, &held, why, deadline, timed_out);
}

// For a function that the program calls, or what such a function calls last: does `body`, which may wait and leaves the
// runtime at its end, and returns what that returns, by a jump that the processor guesses right (runtime/way_back.hpp).
template <class F>
[[gnu::always_inline]] inline auto with_predicted_return(F body) {
  if (M* m = this_m()) m->left.from_call = __builtin_return_address(0);
  auto value = body();
  const M* m = this_m();
  return m ? come_back(m->left.from_call, value) : value;
}
// The same inside the runtime, which it leaves. `body` takes the M, and leaves the present one there.
template <class F>
[[gnu::always_inline]] inline auto with_predicted_return(M* m, F body) {
  if (m) m->left.from_call = __builtin_return_address(0);
  auto value = body(m);
  leave_runtime(m);
  return m ? come_back(m->left.from_call, value) : value;
}

// g was claimed by the caller: it runs as soon as a P gets to it; on this P it is next. Also called by threads without
// a P. A foreign thread is woken.
void ready_without_prefetch(M* m, G* g) noexcept;  // one of many: what is fetched now is out of the cache by its turn
inline void ready(M* m, G* g) noexcept {
  __builtin_prefetch(g->context);  // the top of its stack
  ready_without_prefetch(m, g);
}
inline void ready(G* g) noexcept { ready(this_m(), g); }

// Several, each at the tail: of this P's queue if there is a P, else of the global one.
void ready_all(g_list& gs) noexcept;

// The M goes by its scheduler's loop; the caller has set the goroutine's state, or `commit` does.
[[nodiscard]] M* suspend(M* m, after_switch commit, void* arg) noexcept;

// Everything runnable now gets its turn first.
[[nodiscard]] M* yield_now(M* m) noexcept;

// The calling goroutine has ended. If the next one begins on its stack, the runtime has been left; if not, the caller,
// still inside, switches at once.
last_step end_goroutine() noexcept;

}  // namespace weft::rt
