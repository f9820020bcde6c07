// lock_os_thread: a goroutine and a thread that belong together.
//
// A locked goroutine runs on no other M, and its M, which is "tied", runs no other goroutine. When another M picks the
// goroutine from a queue, it passes its P to the tied M (start_locked_m). When the goroutine parks, the tied M passes
// the P on, and sleeps until it is passed one again (stop_locked_m). When two locked goroutines talk to each other, the
// P goes directly from thread to thread: Go passes it by way of an untied M, which would only pass it on.
//
// So there must always be an M to pass the P to, whatever the limits on threads are: an M that runs the timers, the
// poller and the other goroutines. Therefore at least one M is untied. Before the last untied M is tied, another one is
// started, beyond options::max_threads if need be. If that fails, lock_os_thread throws, since nothing could go on
// after it. At most max_threads Ms are tied at once, so at most one M is beyond the limit. The next goroutine that
// wants to lock its thread waits until an M is untied.
//
// A goroutine that ends while it is locked takes its thread with it, as in Go: nobody knows what it has done to that
// thread. Only if other goroutines are pinned there does the thread stay.
//
// The untied M may itself run a goroutine that computes or blocks, and there may be no other thread to be had
// (start_new_m). Then nobody picks a locked goroutine from its queue, although its thread waits for it and a P idles.
// sysmon brings the three together (start_some_locked_m). It does so only for a goroutine that is queued. While out of
// threads, the timers of idle Ps are run by untied Ms only, so if the last of these blocks, a locked goroutine's sleep
// does not end until that M is back.

#include "sched/locked.hpp"

#include "sched/burst.hpp"
#include "sched/find.hpp"
#include "sched/lifecycle.hpp"
#include "sched/park.hpp"
#include "sched/proc.hpp"
#include "sched/runqueues.hpp"
#include "sched/threads.hpp"

#include <cerrno>

namespace weft::rt {

namespace {

enum class tie : std::uint8_t { reserved, last, too_many, not_yet };

// Counts the M that the caller runs on as tied. `last`: this was the last untied M, so the caller has to start a spare
// one first.
tie reserve_tie() noexcept {
  lock_guard hold(sched.mutex);
  if (sched.tied_ms >= sched.options.max_threads) return tie::too_many;
  bool last = sched.untied_ms == 1;
  // A spare M is starting already, or there are as many Ms as there may be, one of them just starting or leaving.
  if (last && (sched.spare_starts || sched.live_ms > sched.options.max_threads)) return tie::not_yet;
  ++sched.tied_ms;
  --sched.untied_ms;
  sched.spare_starts |= last;
  return last ? tie::last : tie::reserved;
}

enum class untied : std::uint8_t { in_vain, stays, leaves };

char handed_over;  // G::wake_value points to it if the tie that its goroutine waits for is its own now

// Undoes reserve_tie: one M less is tied. If that M stays, and others can run on it, the tie is handed over to the
// goroutine that has waited longest; otherwise one who asks again and again might never leave it to another. One that
// was reserved in vain is not: the next goroutine has to see itself whether it would be the last.
void give_tie_back(untied m) noexcept {
  G* next;
  {
    lock_guard hold(sched.mutex);
    while ((next = sched.tie_waiters.pop_front()) && !next->claim(no_ticket)) {}
    if (next && m == untied::stays) {
      next->wake_value = &handed_over;  // as many Ms are tied as before, and as many are not
    } else {
      --sched.tied_ms;
      sched.untied_ms += m != untied::leaves;
    }
  }
  if (next) ready(next);
}

void wait_for_tie(G* g, void*) noexcept {
  {
    lock_guard hold(sched.mutex);
    if (sched.tied_ms >= sched.options.max_threads) return sched.tie_waiters.push_back(g);
  }
  ready(g);
}

}  // namespace

M* lock_os_thread(M* m, int* error) noexcept {
  *error = 0;
  G* g = m->g;
  if (g->lock_depth == 0) {
    tie t = reserve_tie();
    while (t == tie::too_many || t == tie::not_yet) {
      g->wake_value = nullptr;
      if (t == tie::too_many) {
        m = park(m, wait_for_tie, nullptr, wait_reason::lock_os_thread);
      } else {
        timespec pause{0, 50 * microsecond};
        nanosleep(&pause, nullptr);
      }
      t = g->wake_value == &handed_over ? tie::reserved : reserve_tie();
    }
    if (t == tie::last && (*error = start_spare_m()) != 0) {
      if (sched.shutting_down.load(acquire)) return give_way(m);  // for good: the run() ends, so no M was started
      give_tie_back(untied::in_vain);
      return m;
    }
    // Other goroutines that are pinned to this thread could no longer run, so g moves to another one.
    if (m->pins != 0 && !(g->marks() & mark::tied)) m = leave_thread(m);
    if (m->pins != 0 && !(g->marks() & mark::tied)) {  // there was no other thread to be had
      *error = EAGAIN;
      give_tie_back(untied::in_vain);
      return m;
    }
  }
  ++g->lock_depth;
  g->set_mark(mark::locked_to_thread | mark::uses_seldom);
  g->tied_to = m;
  m->locked_g.store(g, relaxed);
  return m;
}

void unlock_os_thread(M* m) noexcept {
  G* g = m->g;
  if (g->lock_depth == 0) fatal("goroutine {}: unlock_os_thread without lock_os_thread", g->id);
  if (--g->lock_depth > 0) return;
  g->clear_mark(mark::locked_to_thread);
  m->locked_g.store(nullptr, relaxed);
  give_tie_back(untied::stays);
}

void end_locked(M* m) noexcept {
  m->g->lock_depth = 0;  // the mark stays until the G is used again: with it, end_goroutine goes to the scheduler
  m->locked_g.store(nullptr, relaxed);
  m->changed = true;
  m->leaves = m->pins == 0;
  give_tie_back(m->leaves ? untied::leaves : untied::stays);
}

namespace {

// Called under sched.mutex. Passes p to the M that waits for g. `rest` wakes it, when the mutex is free again.
void pass_to_owner(G* g, P* p, late_wakeup& rest) noexcept {
  auto* owner = static_cast<M*>(g->tied_to);
  --sched.idle_locked_ms;
  if (sched.shutting_down.load(relaxed)) return;  // the M was woken for that, and may be gone
  sched.thread_wakeups.fetch_add(1, relaxed);
  owner->next_p = p;
  owner->parked.wakeup(rest);  // under the lock, as in wake_idle_m
}

// Returns p's runnext if that goroutine is locked and p has nothing else to do, else null. If there are goroutines in
// the ring, runnext goes behind them: passed to another thread, it would be served no better than they would be, but it
// would begin a new time slice each time, and two locked goroutines that talk to each other would keep the ring from
// running.
G* next_that_is_locked(const M* m, P* p) noexcept {
  if (!p->runq.ring_empty()) {
    next_behind_others(p);
    return nullptr;
  }
  const G* next = p->runq.peek_next();
  if (!next || !next->locked_to_thread() || dispatcher_is_due(m, p)) return nullptr;
  return p->runq.get_next();  // the same goroutine, or null if a thief was faster
}

}  // namespace

void stop_locked_m(M* m) noexcept {
  if (end_burst(m)) one_spins_less();
  P* p = m->p.load(relaxed);
  G* next = nullptr;
  if (p) {
    next = next_that_is_locked(m, p);
    releasep(m);
    if (!next) handoffp(p);
  }
  {
    late_wakeup rest;
    lock_guard hold(sched.mutex);
    if (sched.shutting_down.load(relaxed)) return;
    if (next) pass_to_owner(next, p, rest);
    ++sched.idle_locked_ms;
    check_dead();
  }
  m->parked.sleep();
  m->parked.clear();
  acquire_passed_p(m);
}

void start_locked_m(M* m, G* g) noexcept {
  P* p = releasep(m);
  {
    late_wakeup rest;
    lock_guard hold(sched.mutex);
    pass_to_owner(g, p, rest);
  }
  stopm(m);
}

void start_some_locked_m() noexcept {
  late_wakeup rest;
  lock_guard hold(sched.mutex);
  if (sched.idle_locked_ms == 0 || !sched.out_of_threads.load(relaxed) || !sched.idle_p_list) return;
  if (sched.shutting_down.load(relaxed) || sched.world_stopping.load(relaxed)) return;
  G* found = nullptr;
  for (std::size_t n = sched.global.size(); n > 0; --n) {
    G* g = sched.global.pop_front();
    if (found || !g->locked_to_thread()) {
      sched.global.push_back(g);
    } else {
      found = g;
    }
  }
  if (!found) return;
  sched.global_size.store(static_cast<std::uint32_t>(sched.global.size()), relaxed);
  pass_to_owner(found, idle_p_get(), rest);
}

}  // namespace weft::rt
