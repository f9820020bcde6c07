// The scheduler: matching work (runnable goroutines, due timers, ready descriptors) with Ms and Ps.
//
// The goal: while there is work and a processor to spare, some M runs that work; while there is no work, no M burns a
// processor. Each half is easy alone. Together they are hard, because work is made ready in one place while Ms go to
// sleep in another. Three simple designs fail:
//   - one central state under one lock: every spawn and every wake-up would contend for it;
//   - handing a P to a thread whenever work is made ready: the thread wakes up to work that its maker would have run
//     itself within a microsecond, and both lose their caches;
//   - waking a thread for each piece of work and letting it search: threads go to sleep and wake up without end.
//
// The design is Go's. An M that has no work "spins": it searches all queues for a bounded time. A thread that makes
// work ready wakes one M, already counted as spinning, if a P idles and no M spins (wakep). An M that finds work stops
// spinning, and wakes the next M if it sees more work (resetspinning). So parallelism unfolds step by step, and a burst
// of ready goroutines does not wake a thundering herd. Go's M wakes the next one without looking for more work first;
// where one goroutine is ready at a time, each of these wake-ups is in vain.
//
// append-check-wake, the protocol that loses no wake-up:
//
//     a thread that makes work ready                an M that finds nothing (find.cpp)
//     A1  append it to a queue or a heap            S1  put the P on the idle list: ++idle_ps (seq_cst)
//         (full barrier; or: alone.cpp)             S2  if it was spinning: --spinning (seq_cst)
//     A2  spinning == 0 and idle_ps != 0?           S3  look at every queue, heap and the poller again
//         then wake one M                           S4  found something: take a P again, spin again
//
//     If A2 reads idle_ps == 0, an M that finds nothing does S1 later in the single order of seq_cst operations, and
//     its S3 sees A1. If A2 reads spinning != 0, the same holds for the S2 and S3 of the spinning M; or that M finds
//     work while it spins, and then resetspinning does S2, looks as S3 does, and wakes one M. Otherwise A2 wakes an M.
//     Work in the own queue of a P that runs is never lost either way: there the protocol only decides whether another
//     M may help.
//
//     An M may doze between giving up its P and S2, and still counts as spinning then (doze.cpp). Goroutines that are
//     hardly worth a theft are left to the dozing M (steal.cpp). An M that came back from the poller may run goroutines
//     while it counts as spinning; its S2 comes when it gives its P up (burst.cpp).
//
//     S3 skips the Ps in idle_mask, whose queues are empty. A P's bit is set before S1, and the thread that takes the P
//     clears it before A1. So if S3 reads a bit that is out of date, A1 is still to come, and its A2 sees S1.
//     timer_mask works the same way: a P that is not in it has no timers, and its bit is set before a timer is added.
//
//     While a goroutine moves from queue to queue, S3 may find it in neither. So a thread that moves one does it in the
//     order in which S3 looks (global_get: into the ring first, then global_size), or makes the goroutine ready anew,
//     with A2 (put_back, runqput_full's callers), or looks as S3 does afterwards (a thief, in resetspinning).
//
//     Go looks again only after spinning, and keeps a flag (needspinning) for the M that gives up its P without having
//     spun (issue 45867). Always looking again costs one read per P before a sleep, and needs no flag.
//
// An M may be without a P: one in a system call has left its P behind (syscall.cpp), and a detached one has lost it
// (preempt.cpp). Such an M must not use anything that belongs to a P.

#include "sched/proc.hpp"

#include "sched/alone.hpp"
#include "sched/burst.hpp"
#include "sched/find.hpp"
#include "sched/hazard.hpp"
#include "sched/latency.hpp"
#include "sched/lifecycle.hpp"
#include "sched/locked.hpp"
#include "sched/newcomers.hpp"
#include "sched/pin.hpp"
#include "sched/poller_sleep.hpp"
#include "sched/runqueues.hpp"
#include "sched/spawn.hpp"
#include "sched/threads.hpp"
#include "sched/timing.hpp"

#include <fmt/format.h>
#include <utility>

namespace weft::rt {

constinit never_destroyed<scheduler> the_scheduler;

// --- idle Ps. All under sched.mutex.

void idle_p_put(P* p) noexcept {
  WEFT_CHECK(p->status.load(relaxed) == p_status::idle, "P {} goes idle in status {}", p->id,
             static_cast<int>(p->status.load(relaxed)));
  WEFT_CHECK(!p->has_turn.load(relaxed), "P {} goes idle with the turn for newcomers", p->id);
  WEFT_CHECK(p->runq.size() == 0, "P {} goes idle with {} goroutines in its queue", p->id, p->runq.size());
  // Only the owner of a P adds timers to its heap, so the heap stays empty while the P idles. The exception is P 0:
  // threads without a P add timers to its heap at any time, and other threads may make these timers earlier right away
  // (Go issue 44868). So the bit of P 0 stays set.
  if (p->id != 0 && p->timers.wake_when() == 0) sched.timer_mask.clear(p->id);
  sched.idle_mask.set(p->id);
  p->let_in_at = 0;  // let_others_in: the time in which it idles is nobody's
  p->next_idle = sched.idle_p_list;
  sched.idle_p_list = p;
  sched.idle_ps.fetch_add(1, seq_cst);  // S1
}

P* idle_p_get() noexcept {
  P* p = sched.idle_p_list;
  if (!p) return nullptr;
  others_come();
  sched.idle_p_list = p->next_idle;
  p->next_idle = nullptr;
  sched.timer_mask.set(p->id);
  sched.idle_mask.clear(p->id);
  sched.idle_ps.fetch_sub(1, seq_cst);
  // The first P that leaves the idle list ends sysmon's deep sleep.
  wake_sysmon();
  return p;
}

P* some_idle_p() noexcept {
  lock_guard hold(sched.mutex);
  return idle_p_get();
}

void wake_sysmon() noexcept {
  if (!std::exchange(sched.sysmon_waits, false)) return;
  sched.coarse_now.store(nanotime(), relaxed);  // not kept up to date while sysmon slept
  sched.sysmon_note.wakeup();
}

void hurry_sysmon() noexcept {
  // relaxed: a caller that misses a change of state here is looked after when the pause is over.
  sysmon_state s = sched.sysmon.load(relaxed);
  if (s == sysmon_state::may_be_hurried) {
    if (sched.sysmon.compare_exchange_strong(s, sysmon_state::looks, relaxed, relaxed)) sched.sysmon_pause.wakeup();
  } else if (s == sysmon_state::rests) {
    sched.sysmon.compare_exchange_strong(s, sysmon_state::wanted, relaxed, relaxed);
  }
}

// While there is a promise, its alarm is earlier, and sysmon then looks after all that waits (burst.cpp). An M may make
// one at this moment, as it does not see yet that this M has taken a P. Either the second look sees that (B1), and sets
// the promise's alarm again; or B1 and B2 come later, and B2's alarm stands.
void have_sysmon_poll() noexcept {
  const nanos now = sched.coarse_now.load(relaxed);  // fresh in an M that comes back from the poller
  if (now >= sched.watch_poller_until.load(relaxed)) return;
  if (now < sched.sysmon_polls.load(relaxed) || promise_due() != forever) return;
  sched.sysmon_polls.store(now + polled_every, relaxed);
  sched.sysmon_pause.ring_at(now + polled_every);
  if (nanos due = promise_due(); due != forever) sched.sysmon_pause.ring_at(due);
}

std::uint64_t all_dispatches() noexcept {
  std::uint64_t sum = 0;
  const std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) sum += dispatches(sched.all_ps[i].load(acquire));
  return sum;
}

// --- M holds P

void acquirep(M* m, P* p) noexcept {
  WEFT_CHECK(!m->p.load(relaxed) && !p->m.load(relaxed), "M {} takes P {} which M {} holds", m->id, p->id,
             fmt::ptr(p->m.load(relaxed)));
  p->began = {};  // a goroutine that goes on here has begun before
  m->p.store(p, relaxed);
  p->m.store(m, relaxed);
  p->status.store(p_status::running, release);
}

void acquire_passed_p(M* m) noexcept {
  if (P* p = std::exchange(m->next_p, nullptr)) acquirep(m, p);
}

P* releasep(M* m) noexcept {
  P* p = m->p.load(relaxed);
  WEFT_CHECK(p && p->m.load(relaxed) == m && p->status.load(relaxed) == p_status::running,
             "M {} gives up a P it does not hold", m->id);
  m->p.store(nullptr, relaxed);
  p->m.store(nullptr, release);
  p->status.store(p_status::idle, release);
  return p;
}

// --- waking an M for work

void startm(P* p, bool spinning) noexcept {
  std::uint64_t run;
  {
    late_wakeup rest;
    lock_guard hold(sched.mutex);
    if (!p && !sched.shutting_down.load(relaxed)) p = idle_p_get();
    if (!p || sched.shutting_down.load(relaxed)) {
      if (spinning) sched.spinning.fetch_sub(1, seq_cst);
      return;  // a P that the caller passed stays with the caller: the runtime ends
    }
    sched.thread_wakeups.fetch_add(1, relaxed);
    if (wake_some_idle_m(p, spinning, rest)) return;
    run = present_run();
  }
  start_new_m(p, spinning, run);
}

void wakep(help h) noexcept {
  if (h != help::to_poll && !sched.help_wanted.load(relaxed)) sched.help_wanted.store(true, relaxed);
  std::uint32_t none = 0;
  if (sched.spinning.load(seq_cst) != 0 || !sched.spinning.compare_exchange_strong(none, 1, seq_cst, relaxed)) {
    if (h == help::now && sched.dozer.load(seq_cst)) rouse_dozer();
    return;
  }
  if (promise_to_do_it_all()) return;
  P* p;
  std::uint64_t run;
  {
    late_wakeup rest;
    lock_guard hold(sched.mutex);
    p = sched.world_stopping.load(relaxed) || sched.shutting_down.load(relaxed) ? nullptr : idle_p_get();
    if (!p) {
      // Every P is held, and each M looks again after it gives its P up. Under the lock: an M that does so afterwards
      // sees the work of everybody whom our count in `spinning` kept from waking an M.
      sched.spinning.fetch_sub(1, seq_cst);
      return;
    }
    sched.thread_wakeups.fetch_add(1, relaxed);
    if (wake_some_idle_m(p, true, rest)) return;
    run = present_run();
  }
  start_new_m(p, true, run);
}

bool timer_wants_poller(nanos horizon) noexcept {
  if (sched.last_poll.load(seq_cst) == 0) return false;
  nanos timer = earliest_timer();
  return timer != 0 && timer - nanotime() < horizon;
}

bool poller_is_wanted(nanos horizon) noexcept {
  return (sched.last_poll.load(seq_cst) != 0 && anybody_waits_for_io()) || timer_wants_poller(horizon);
}

void start_spinning(M* m) noexcept {
  m->spinning.store(true, relaxed);
  sched.spinning.fetch_add(1, seq_cst);
}

void resetspinning(M* m) noexcept {
  m->spinning.store(false, relaxed);
  one_spins_less();
}

void one_spins_less() noexcept {
  sched.spinning.fetch_sub(1, seq_cst);  // S2
  if (sched.idle_ps.load(seq_cst) == 0) return;
  barrier_to_who_is_alone();                                      // S2b
  if (queued what = look_at_queues(); what != queued::nothing) {  // S3
    wakep(what == queued::work ? help::now : help::soon);
  } else if (poller_is_wanted()) {
    wakep(help::to_poll);  // some M has to poll while this one, or that of a burst, runs a goroutine
  }
}

void handoffp(P* p) noexcept {
  WEFT_CHECK(p->status.load(relaxed) == p_status::idle, "P {} handed off in status {}", p->id,
             static_cast<int>(p->status.load(relaxed)));
  // There is work in p's own queue or in the global one: some M has to run it.
  if (!p->runq.empty() || sched.global_size.load(seq_cst) != 0) return startm(p, false);
  // No M spins and no P idles: work that is made ready now would find no helper.
  std::uint32_t none = 0;
  if (sched.spinning.load(seq_cst) + sched.idle_ps.load(seq_cst) == 0 &&
      sched.spinning.compare_exchange_strong(none, 1, seq_cst, relaxed)) {
    return startm(p, true);
  }
  nanos when = 0;
  bool start;
  {
    lock_guard hold(sched.mutex);
    if (sched.world_stopping.load(relaxed)) {
      p->status.store(p_status::stopped, relaxed);
      sched.stop_note.wakeup();
      return;
    }
    // An M that gives its P up sleeps in the poller if no M does. Here the P is given up for an M that does not do so.
    bool last = sched.idle_ps.load(relaxed) == sched.procs.load(relaxed) - 1;
    start = sched.global_size.load(relaxed) != 0 || poller_is_wanted() || (last && sched.last_poll.load(relaxed) != 0);
    if (!start) {
      when = p->timers.wake_when();
      idle_p_put(p);
    }
  }
  if (start) return startm(p, false);
  if (when != 0) wake_net_poller(when);
  if (look_at_queues() != queued::nothing) {  // S3: made ready, or armed, by a thread that saw no P idle
    wakep();
  } else if (poller_is_wanted()) {
    wakep(help::to_poll);
  }
}

// --- an M's life

namespace {

// Runs g, which the caller took from a queue. Returns when the M is back on its own stack.
void execute(M* m, G* g, bool inherit) noexcept {
  P* p = m->p.load(relaxed);
  until_all_are_aware(m);
  count_dispatch(p, inherit);
  if (std::uint32_t r = m->requests.load(relaxed); WEFT_UNLIKELY(r != 0)) {
    // A request to yield was meant for the goroutine that ran before.
    if (r & request::yield) m->requests.fetch_and(~request::yield, relaxed);
    if (r & request::hazard) forget_held_locks();
  }
  g->set_state(g_state::runnable, g_state::running);
  if (WEFT_UNLIKELY(g->marks() & mark::timed)) count_latency(p, g);
  if (!g->context) begin(p, g);
  switch_to(m, g, nullptr, nullptr);
}

// Returns the goroutine that this M runs next. Null: the run() ends, or this M's thread does.
G* schedule(M* m, place* from) noexcept {
  for (;;) {
    // The goroutine that ran here last has parked, yielded or ended.
    if (P* p = m->p.load(relaxed)) return_turn(p);
    if (WEFT_UNLIKELY(m->leaves)) {
      if (end_burst(m)) one_spins_less();
      if (m->p.load(relaxed)) handoffp(releasep(m));
      return nullptr;
    }
    if (m->locked_g.load(relaxed)) {
      stop_locked_m(m);
      if (sched.shutting_down.load(acquire)) return nullptr;
      *from = place::queue;
      return m->locked_g.load(relaxed);
    }
    G* g = std::exchange(m->picked, nullptr);
    *from = place::queue;
    if (!g) g = find_runnable(m, from);
    if (!g) return nullptr;
    if (WEFT_UNLIKELY(put_newcomer_aside(m->p.load(relaxed), g, *from != place::queue))) continue;
    if (m->spinning.load(relaxed)) {
      resetspinning(m);
    } else if (sched.idle_ps.load(seq_cst) != 0) {
      if (timer_wants_poller()) {
        wakep(help::to_poll);
      } else if (sched.last_poll.load(relaxed) != 0 && anybody_waits_for_io()) {
        have_sysmon_poll();
      }
    }
    if (WEFT_UNLIKELY(g->marks() & mark::tied) && g->tied_to != m) {
      g->locked_to_thread() ? start_locked_m(m, g) : deliver_pinned(m, g);
      continue;
    }
    if (WEFT_UNLIKELY(m->requests.load(relaxed) & request::hazard) && must_migrate(m, g) && pass_on(m, g)) continue;
    return g;
  }
}

}  // namespace

void m_main(M* m) noexcept {
  if (m->begins_idle) {
    m->parked.sleep();  // start_spare_m has counted this M and put it on the idle list
    m->parked.clear();
  } else {
    lock_guard hold(sched.mutex);
    ++sched.untied_ms;
  }
  acquire_passed_p(m);
  place from;
  while (G* g = schedule(m, &from)) execute(m, g, from == place::next);
  if (m->spinning.load(relaxed)) sched.spinning.fetch_sub(1, seq_cst);
  if (end_burst(m)) sched.spinning.fetch_sub(1, seq_cst);

  lock_guard hold(sched.mutex);
  if (m->p.load(relaxed)) {
    // The runtime ends while this M holds a P.
    P* p = releasep(m);
    p->status.store(p_status::stopped, relaxed);
    sched.stop_note.wakeup();
  }
  --sched.live_ms;
  if (m->leaves && !sched.shutting_down.load(relaxed)) {
    sched.all_ms.erase(m);
    note_gone(m);
    check_dead();
    // At the limit on threads, one was refused as long as this M counted.
    if (sched.out_of_threads.load(relaxed) && sched.idle_p_list) want_m_from_sysmon();
    return;
  }
  m->finished.store(true, release);
  sched.exit_note.wakeup();
}

}  // namespace weft::rt
