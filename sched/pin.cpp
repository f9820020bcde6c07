// pin: a goroutine that stays on the M that it is on. The M runs other goroutines meanwhile.
//
// A pinned goroutine is queued like any other. If another M than its own takes it from a queue, that M appends it to
// the owner's list (pinned_ready) and raises request::pinned there (deliver_pinned). The owner looks at its list as
// soon as it goes by its scheduler's loop, where the list and its P's queue take turns. What follows depends on the
// owner:
//
//   the owner                           then
//   holds a P                           comes by its scheduler's loop when the goroutine that it runs is suspended
//   idles                               is woken and passed a P: an idle one, else that of the M that delivers
//   is about to idle (stopm)            takes an idle P. If there is none, the goroutines of the list go back to the
//                                       global queue, and the M that takes one from there finds the owner idle
//   sleeps in the poller                its sleep is broken off, see below
//   runs a goroutine without a P, or    comes by when that goroutine next calls weft, or returns from its system call
//   is in a system call
//   is tied to a goroutine that is      the list waits until that goroutine unlocks its thread (locked.cpp). If that
//   pinned to it, too                   waits for one of the list, for ever: the deadlock check reports it
//
// So a pinned goroutine may have to wait for the goroutine that runs on its thread. It need not wait for one that
// announces that it blocks: that one moves to another M first (leave_thread).
//
//     the M that delivers, under sched.mutex          the owner, before it sleeps in the poller
//     N1  append the goroutine; raise the request     L1  in_poller = true
//     N2  in_poller? then break the sleep off         L2  request::pinned? then do not sleep
//
//     All of this is seq_cst: if N2 does not see L1, L2 sees N1.

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
    late_wakeup rest;
    lock_guard hold(sched.mutex);
    // The run() ends, and g never runs again. Before that the owner exists: an M to which a goroutine is pinned does
    // not leave.
    if (sched.shutting_down.load(relaxed)) return;
    owner->pinned_ready.push_back(g);
    owner->requests.fetch_or(request::pinned, seq_cst);  // N1
    if (owner->in_idle_list) {
      P* p = sched.world_stopping.load(relaxed) ? nullptr : idle_p_get();
      return wake_idle_m(owner, p ? p : releasep(m), false, rest);
    }
    polls = owner->in_poller.load(seq_cst);  // N2
  }
  if (polls) netpoll_break();
}

G* take_pinned(M* m) noexcept {
  lock_guard hold(sched.mutex);
  G* g = m->pinned_ready.pop_front();
  if (m->pinned_ready.empty()) m->requests.fetch_and(~request::pinned, relaxed);  // it is raised under the lock only
  return g;
}

bool take_p_for_pinned(M* m) noexcept {
  P* p = sched.world_stopping.load(relaxed) ? nullptr : idle_p_get();
  if (p) {
    acquirep(m, p);
    return true;
  }
  global_put_first(m->pinned_ready);  // they have been at the front already
  m->requests.fetch_and(~request::pinned, relaxed);
  return false;
}

}  // namespace weft::rt
