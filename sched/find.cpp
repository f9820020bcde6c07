// find_runnable: where an M looks for work, in order, and what it does before it sleeps. The essay is in proc.cpp.

#include "sched/find.hpp"

#include "netpoll/netpoll.hpp"
#include "sched/alone.hpp"
#include "sched/burst.hpp"
#include "sched/doze.hpp"
#include "sched/io.hpp"
#include "sched/newcomers.hpp"
#include "sched/park.hpp"
#include "sched/pin.hpp"
#include "sched/poller_sleep.hpp"
#include "sched/proc.hpp"
#include "sched/runqueues.hpp"
#include "sched/steal.hpp"
#include "sched/threads.hpp"
#include "sched/timing.hpp"
#include "sched/turns.hpp"
#include "sched/world.hpp"

#include <algorithm>
#include <utility>

namespace weft::rt {

namespace {

constexpr int polls_before_stealing = 16;
constexpr nanos refill_every = 10 * microsecond;  // between two refills of the run queue, while timers are due

// Runs the due timers of idle Ps. While out of threads (start_new_m), an idle P may never get an M, and the Ms that
// have a thread may always have something of their own to run. sysmon makes them look when a timer is overdue.
nanos check_timers_of_idle(const P* mine, nanos* now, bool* ran) {
  nanos next = 0;
  std::uint32_t n = sched.procs.load(relaxed);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!sched.idle_mask.has(i) || !sched.timer_mask.has(i)) continue;
    next = earlier(next, check_timers(sched.all_ps[i].load(acquire), mine, true, now, ran));
  }
  return next;
}

// Plans when the dispatcher has to look at timers and the poller again although there is local work.
void plan_next_look(P* p, nanos now, nanos next_timer) noexcept {
  if (WEFT_UNLIKELY(sched.newcomers_wait.load(relaxed) || newcomers_aside() != 0)) {
    return p->next_look.store(1, relaxed);
  }
  if (next_timer == 0 && !anybody_waits_for_io()) {
    p->next_look.store(0, relaxed);
    return;
  }
  nanos in = look_every;
  if (next_timer != 0) in = next_timer > now ? std::min(next_timer - now, look_every) : refill_every;
  p->next_look.store(cpu_ticks() + static_cast<std::uint64_t>(in) * cpu_tick_rate.per_us / 1000 + 1, relaxed);
}

// True if somebody waits for I/O, no M blocks in the poller, and none has looked there within `pause`. *last: when one
// last looked.
bool may_poll(nanos now, nanos pause, nanos* last) noexcept {
  if (!anybody_waits_for_io()) return false;
  *last = sched.last_poll.load(relaxed);
  return *last != 0 && now - *last >= pause;
}

// Polls without blocking, unless another M has looked since `last`.
g_list poll_once(nanos now, nanos last) noexcept {
  g_list woken;
  if (sched.last_poll.compare_exchange_strong(last, now, acq_rel, relaxed)) poll_network(0, woken);
  return woken;
}

// Polls now and then while there is other work, however long that goes on. The first goroutine that is woken runs now,
// if it may pass the others, and either the ring is empty, or it is the only one: the rest go to the ring's end. Half
// of look_every: with all of it, a look that comes just before that time has passed would put the poll off to the next
// look, so that two polls would be nearly twice look_every apart.
G* poll_while_busy(P* p, nanos now) noexcept {
  nanos last;
  if (!may_poll(now, look_every / 2, &last)) return nullptr;
  g_list woken = poll_once(now, last);
  const bool nobody_waits = p->runq.empty() && sched.global_size.load(relaxed) == 0;
  const bool one_may_pass = p->runq.ring_empty() ? !woken.empty() : woken.size() == 1;
  if (nobody_waits || (one_may_pass && may_pass(p, now))) return ready_all_but_first(p, woken);
  ready_all(woken);
  return nullptr;
}

// Polls when there is nothing else to run here. Only one M at a time does: the others would fight for the kernel's lock
// (Go issue 65064). (poll_while_busy does not ask whether another M looks: that one may have lost its processor.)
G* poll_before_stealing(M* m, P* p, nanos now) noexcept {
  nanos last;
  if (!may_poll(now, 0, &last)) return nullptr;
  if (sched.somebody_looks.load(relaxed) || sched.somebody_looks.exchange(true, acquire)) return nullptr;
  g_list woken = poll_once(now, last);
  sched.somebody_looks.store(false, release);
  if (!woken.empty()) {
    sched.spare_looker.store(m, relaxed);
    sched.spare_look.store(now, relaxed);
  }
  return ready_all_but_first(p, woken);
}

// Takes a goroutine from p's own queue. With hazard.cpp every goroutine is dispatched from here, and none by next_local
// (park.cpp), which otherwise sees to it that runnext does not always win. So the ring comes first every other time.
G* local_one(M* m, P* p, bool* inherit) noexcept {
  const bool hazard = m->requests.load(relaxed) & request::hazard;
  if (WEFT_UNLIKELY(hazard) && dispatches(p) % 2) {
    *inherit = false;
    if (G* g = ring_one(p)) return g;
  }
  G* g = p->runq.get_next();
  *inherit = g && !hazard;
  return g ? g : ring_one(p);
}

// Takes one goroutine from the global queue, or a newcomer. Each source comes first every other time, as either may
// never run out.
G* shared_one(P* p) noexcept {
  p->newcomer_first = !p->newcomer_first;
  G* g = p->newcomer_first ? take_newcomer(p) : nullptr;
  if (!g && !batch_waits(p)) g = global_one(p, 1);
  return g || p->newcomer_first ? g : take_newcomer(p);
}

bool some_m_idles() noexcept {
  lock_guard hold(sched.mutex);
  return sched.idle_m_list != nullptr;
}

// S3, after the M gave its P up: looks for work that was made ready meanwhile. Returns an idle P for it. Null: there is
// no work, or no P idles, or the work is crumbs that are left to a dozer, which there is or will be (steal.cpp). While
// all leave, anything is left to the dozer.
P* recheck_queues(thief_takes* what) noexcept {
  const queued seen = look_at_queues();
  if (seen == queued::nothing) return nullptr;
  const M* dozer = sched.dozer.load(seq_cst);
  if (dozer && (seen == queued::crumbs || sched.all_leave_to.load(relaxed) == dozer)) return nullptr;
  if (seen == queued::crumbs && poller_is_wanted(forever) && some_m_idles()) {
    wakep(help::soon);  // that one may doze when this M sleeps in the poller
    if (!sched.out_of_threads.load(seq_cst)) return nullptr;
  }
  *what = seen == queued::crumbs ? thief_takes::crumbs_too : thief_takes::work;
  return some_idle_p();
}

// True if fewer than half of the busy Ps have an M that looks for work. A dozer counts as spinning, and so does an M
// that has promised to do all the work (burst.cpp), but neither of them looks.
bool may_spin() noexcept {
  std::uint32_t look = sched.spinning.load(relaxed);
  if (look > 0 && sched.dozer.load(relaxed)) --look;
  if (look > 0 && sched.promiser.load(relaxed)) --look;
  return 2 * look < sched.procs.load(relaxed) - sched.idle_ps.load(relaxed);
}

// The steps of find_runnable. *now is 0 until a step needs the time.

// Runs the timers that are due. If a look is planned (next_look), due or not, or if it is the global queue's turn, also
// takes from the global queue or from the poller, even if there is local work.
G* look_as_planned(P* p, nanos* now, bool* ran_timer) noexcept {
  nanos next_timer = check_timers(p, p, true, now, ran_timer);
  if (WEFT_UNLIKELY(sched.out_of_threads.load(relaxed))) {
    next_timer = earlier(next_timer, check_timers_of_idle(p, now, ran_timer));
  }
  const bool global_first = takes_turn_of_global_queue(p, *ran_timer);
  if (p->next_look.load(relaxed) == 0 && !global_first) {
    if (next_timer != 0) plan_next_look(p, *now, next_timer);
    return nullptr;
  }
  if (*now == 0) *now = nanotime();
  sched.coarse_now.store(*now, relaxed);
  if (G* g = overdue_one(p, *now)) return g;
  if (G* g = overdue_in_ring(p, *now)) return g;
  if (global_first) {
    if (G* g = shared_one(p)) {
      p->next_look.store(1, relaxed);  // the poller comes next: it, too, might always have a goroutine to run
      return g;
    }
  }
  G* g = poll_while_busy(p, *now);
  plan_next_look(p, *now, next_timer);
  return g;
}

bool others_wait_behind_next(const P* p) noexcept {
  return !p->runq.ring_empty() || sched.global_size.load(relaxed) != 0;
}

// Takes a goroutine from this P's own queue, or one that is pinned to this thread. If some of those are ready, they
// come first every other time.
G* take_own(M* m, P* p, bool ran_timer, nanos now, place* from) noexcept {
  if (ran_timer && others_wait_behind_next(p) && !may_pass(p, now)) next_behind_others(p);
  const bool pinned = m->requests.load(relaxed) & request::pinned;
  if (WEFT_UNLIKELY(pinned) && (m->pinned_first = !m->pinned_first)) {
    if (G* g = take_pinned(m)) return g;
  }
  bool inherit;
  if (G* g = local_one(m, p, &inherit)) {
    if (inherit && !ran_timer) *from = place::next;  // otherwise a timer made it ready, not the one that ran before
    return g;
  }
  return WEFT_UNLIKELY(pinned) ? take_pinned(m) : nullptr;
}

// Takes from the sources that all Ps share. What has come to the poller can be had for a look, while a sleep in the
// poller would cost this M its P, and a wake-up of the next M. After `polls_before_stealing` polls in a row the M
// steals instead, so that the queues of the other Ps are not forgotten.
G* take_shared(M* m, P* p, nanos* now) noexcept {
  judge_last_theft(m, p);
  if (G* g = global_one(p, 0)) return g;
  if (G* g = take_newcomer(p)) return g;
  if (*now == 0) *now = nanotime();
  if (m->polls_in_a_row < polls_before_stealing) {
    ++m->polls_in_a_row;
    if (G* g = poll_before_stealing(m, p, *now)) return g;
  }
  m->polls_in_a_row = 0;
  return nullptr;
}

// Asked by an M that has a P: do all others idle?
bool is_last_p() noexcept { return sched.idle_ps.load(relaxed) + 1 >= sched.procs.load(relaxed); }

// Ps collide at channels: does this one help? If not, or to find that out, m leaves what is ready here to the others,
// by the global queue, and goes to doze. If there are more than one, they follow it: each M that collides leaves what
// is ready at its P, and sleeps, until one P is left (help_trial.cpp); not necessarily one that collides. While the
// goroutines move, an M at S3 may see them nowhere. That loses none: m's own D4 or S3 follows, or it looks for work as
// a spinning M, if its P is the last. At that S3 m goes to sleep in spite of what it sees if the dozer is one that all
// leave to. The D3 of that dozer comes later in the single order of seq_cst operations, and its D4 sees that, as with
// crumbs (steal.cpp). all_leave_to is no part of this: it may be read too early or too late, but what is left is left
// to an M that dozes. Returns true if m must give its P up.
bool leaves(M* m, P* p) noexcept {
  m->collides = false;
  if (is_last_p()) return false;
  if (m->pins != 0 || poller_is_wanted(forever)) return false;  // it would not doze, or sleep
  const M* dozer = sched.dozer.load(relaxed);
  if (!dozer) {
    if (!m->help.may_leave(cpu_ticks()) || !m->help.leaves(work_done_now())) return false;
    if (!m->spinning.load(relaxed)) start_spinning(m);
    sched.help_wanted.store(true, relaxed);
  } else if (sched.all_leave_to.load(relaxed) != dozer) {
    return false;
  }
  lock_guard hold(sched.mutex);
  global_put_queue_of(p);
  return true;
}

enum class after : bool { nothing_was_found, its_work_was_left };

// Gives the P up, and looks everywhere once more before it sleeps. Returns null if the caller has to look for work
// again: the M then has a P once more, or stopm gives it one.
G* sleep_without_p(M* m, P* p, after why, thief_takes* what) noexcept {
  {
    lock_guard hold(sched.mutex);
    if (sched.world_stopping.load(relaxed) || sched.shutting_down.load(relaxed)) return nullptr;
    if (G* g = why == after::nothing_was_found ? global_get(p, 0) : nullptr) return g;
    if (why == after::its_work_was_left && is_last_p()) {  // the others were faster
      if (!m->spinning.load(relaxed)) start_spinning(m);
      return nullptr;
    }
    sched.left_in_global.store(sched.global_size.load(relaxed), relaxed);
    releasep(m);
    idle_p_put(p);  // S1
  }
  bool was_spinning = m->spinning.load(relaxed);
  if (end_burst(m)) {
    if (was_spinning) sched.spinning.fetch_sub(1, seq_cst);  // one of two
    m->spinning.store(was_spinning = true, relaxed);
  }
  if (was_spinning) {
    if (doze(m)) {
      *what = thief_takes::crumbs_too;
      return nullptr;
    }
    m->spinning.store(false, relaxed);
    sched.spinning.fetch_sub(1, seq_cst);  // S2
  }
  barrier_to_who_is_alone();              // S2b
  if (P* again = recheck_queues(what)) {  // S3
    acquirep(m, again);
    start_spinning(m);  // S4
    return nullptr;
  }
  G* g = nullptr;
  if (!sleep_in_poller(m, tidy_timers(), was_spinning, &g)) stopm(m);
  return g;
}

}  // namespace

G* find_runnable(M* m, place* from) noexcept {
  *from = place::queue;
  auto what = thief_takes::work;
  for (;;) {
    if (WEFT_UNLIKELY(sched.shutting_down.load(acquire) || m->leaves)) return nullptr;
    P* p = m->p.load(relaxed);
    if (!p) {
      stopm(m);
      continue;
    }
    until_all_are_aware(m);
    if (WEFT_UNLIKELY(m->picked != nullptr)) return std::exchange(m->picked, nullptr);  // passed on with the P
    if (WEFT_UNLIKELY(sched.world_stopping.load(acquire))) {
      stop_for_the_world(m);
      continue;
    }
    look_now_and_then_whether_alone(p);
    if (WEFT_UNLIKELY(m->collides) && leaves(m, p)) {
      if (G* g = sleep_without_p(m, p, after::its_work_was_left, &what)) return g;
      continue;
    }
    nanos now = 0;
    bool ran_timer = false;
    if (G* g = look_as_planned(p, &now, &ran_timer)) return g;
    if (G* g = take_own(m, p, ran_timer, now, from)) return g;
    if (G* g = take_shared(m, p, &now)) return g;
    // At most half as many Ms spin as there are busy Ps, as spinning may be in vain.
    if (m->spinning.load(relaxed) || may_spin()) {
      if (!m->spinning.load(relaxed)) start_spinning(m);
      p->count.spins.add();
      steal_result r = steal_work(m, p, std::exchange(what, thief_takes::work), &now);
      if (r.was_next) *from = place::next_elsewhere;
      if (r.g) return r.g;
      if (r.ran_timers) continue;
    }
    if (G* g = sleep_without_p(m, p, after::nothing_was_found, &what)) return g;
  }
}

}  // namespace weft::rt
