// lock_os_thread: a goroutine and a thread that belong together.
//
// The goroutine runs on no other M, and the M runs no other goroutine. When another M picks the goroutine from a queue
// it passes its P to the M that waits for it (start_locked_m); when the goroutine parks, its M passes the P on and
// sleeps until then (stop_locked_m).

#include "sched/proc.hpp"

#include <utility>

namespace weft::rt {

M* lock_os_thread(M* m) noexcept {
  // Others that are pinned to this thread could not run on it any more.
  if (m->pins != 0 && !(m->g->marks() & mark::tied)) m = leave_thread(m);
  G* g = m->g;
  ++g->lock_depth;
  g->set_mark(mark::locked_to_thread);
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
}

void stop_locked_m(M* m) noexcept {
  if (m->p.load(relaxed)) handoffp(releasep(m));
  {
    lock_guard hold(sched.mutex);
    if (sched.shutting_down.load(relaxed)) return;
    ++sched.idle_locked_ms;
    check_dead();
  }
  m->parked.sleep();
  m->parked.clear();
  if (P* p = std::exchange(m->next_p, nullptr)) acquirep(m, p);
}

void start_locked_m(M* m, G* g) noexcept {
  auto* owner = static_cast<M*>(g->tied_to);
  P* p = releasep(m);
  {
    lock_guard hold(sched.mutex);
    --sched.idle_locked_ms;
    owner->next_p = p;
  }
  owner->parked.wakeup();
  stopm(m);
}

}  // namespace weft::rt
