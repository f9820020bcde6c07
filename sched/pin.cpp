// pin: a goroutine that goes on on the M it is on, which runs others meanwhile.
//
// It is queued like any other. An M that takes it from a queue and is not its own puts it on a list of that one
// (deliver_pinned) and raises request::pinned there; that M takes from the list before it looks for other work. Where
// it is by then:
//
//   it holds a P                        it comes by its scheduler's loop when what it runs is next suspended
//   it idles                            it is woken and passed a P: one that idles, else the deliverer's
//   it is about to idle (stopm)         it takes a P that idles; if none does, the list goes back to the global queue,
//                                       and whoever takes from there finds it idle
//   it sleeps in the poller             it is broken off, see below
//   it runs something without a P,      it comes by when that next calls weft, or returns from its system call
//   or is in a system call
//   it is tied to one that is pinned    the list waits until that one unlocks (locked.cpp); if that waits for one of
//   to it, too                          the list, for ever: the deadlock check reports it
//
// So a pinned goroutine may have to wait for what runs on its thread. For a goroutine that announces that it blocks it
// need not: that one moves to another M first (leave_thread).
//
//     who delivers, under sched.mutex          the M, before it sleeps in the poller
//     N1  append it; raise request::pinned     L1  in_poller = true
//     N2  in_poller? then break it off         L2  request::pinned? then it does not sleep
//
//     All of it seq_cst: if N2 does not see L1, L2 sees N1.

#include "sched/pin.hpp"

#include "netpoll/netpoll.hpp"
#include "sched/proc.hpp"
#include "sched/runqueues.hpp"
#include "sched/threads.hpp"

namespace weft::rt {

void pin(M* m) noexcept {
  G* g = m->g;
  if (g->pin_depth++ != 0) return;
  ++m->pins;
  g->set_mark(mark::pinned_to_thread | mark::uses_seldom);
  g->tied_to = m;
}

void unpin(M* m) noexcept {
  G* g = m->g;
  if (g->pin_depth == 0) fatal("goroutine {}: a weft::pin ends in a goroutine that did not begin it", g->id);
  if (--g->pin_depth != 0) return;
  --m->pins;
  g->clear_mark(mark::pinned_to_thread);
}

void deliver_pinned(M* m, G* g) noexcept {
  auto* owner = static_cast<M*>(g->tied_to);
  bool polls;
  {
    lock_guard hold(sched.mutex);
    // It never runs again. Otherwise its M is there: none leaves that a goroutine is pinned to.
    if (sched.shutting_down.load(relaxed)) return;
    owner->pinned_ready.push_back(g);
    owner->requests.fetch_or(request::pinned, seq_cst);  // N1
    if (owner->in_idle_list) {
      P* p = sched.world_stopping.load(relaxed) ? nullptr : idle_p_get();
      return wake_idle_m(owner, p ? p : releasep(m), false);
    }
    polls = owner->in_poller.load(seq_cst);  // N2
  }
  if (polls) netpoll_break();
}

G* take_pinned(M* m) noexcept {
  lock_guard hold(sched.mutex);
  G* g = m->pinned_ready.pop_front();
  if (m->pinned_ready.empty()) m->requests.fetch_and(~request::pinned, relaxed);  // raised under the lock only
  return g;
}

bool take_p_for_pinned(M* m) noexcept {
  P* p = sched.world_stopping.load(relaxed) ? nullptr : idle_p_get();
  if (p) {
    acquirep(m, p);
    return true;
  }
  while (G* g = m->pinned_ready.pop_front()) global_put(g);
  m->requests.fetch_and(~request::pinned, relaxed);
  return false;
}

}  // namespace weft::rt
