// find_runnable: where an M looks for work, in order, and how it goes to sleep. The essay is in proc.cpp.

#include "sched/find.hpp"

#include "netpoll/netpoll.hpp"
#include "runtime/deadline_clock.hpp"
#include "sched/alone.hpp"
#include "sched/burst.hpp"
#include "sched/io.hpp"
#include "sched/newcomers.hpp"
#include "sched/park.hpp"
#include "sched/pin.hpp"
#include "sched/proc.hpp"
#include "sched/runqueues.hpp"
#include "sched/steal.hpp"
#include "sched/threads.hpp"
#include "sched/timing.hpp"
#include "sched/world.hpp"

#include <algorithm>
#include <utility>

namespace weft::rt {

namespace {

constexpr nanos look_every = 100 * microsecond;  // between two looks into the poller, while there is local work
constexpr int looks_before_stealing = 16;
constexpr nanos refill_every = 10 * microsecond;  // between two refills of the run queue, while timers are due
constexpr std::uint64_t passes_every = 8;         // dispatches
constexpr nanos passes_after = millisecond;
constexpr nanos doze_time = 100 * microsecond;
constexpr nanos waits_for_long = 10 * millisecond;

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

// A goroutine woken by the poller or by a timer may run ahead of those that wait, but not every time: two goroutines
// that keep waking each other, or timers that are due again as soon as they have run, or a connection that always has
// more to read, would otherwise keep the P to themselves. In between, those that wait must have had a turn:
// `passes_every` dispatches, or one goroutine that used up its time slice (note_slice_used_up), or, once `passes_after`
// has passed, any at all.
bool may_pass(P* p, nanos now) noexcept {
  const std::uint64_t at = dispatches(p), since = at - p->passed_at;
  const bool soon = p->passed_at != 0 && since < passes_every;
  if (soon && (since < 2 || now - p->passed_when < passes_after)) return false;
  p->passed_at = at;
  p->passed_when = now;
  p->pass_slice = p->sched_tick.load(relaxed) + 1;
  return true;
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

// Returns the first goroutine of `woken`, to run now, and queues the others. Null if there is none.
G* take_first(P* p, g_list& woken) noexcept {
  G* g = woken.pop_front();
  if (!g) return nullptr;
  g->set_state(g_state::waiting, g_state::runnable);
  p->count.wakeups.add();
  ready_all(woken);
  return g;
}

// Polls now and then while there is other work, however long that goes on. The first goroutine that is woken runs now,
// if it may pass the others, and either the ring is empty, or it is the only one: the rest go to the ring's end.
G* poll_while_busy(P* p, nanos now) noexcept {
  nanos last;
  if (!may_poll(now, look_every / 2, &last)) return nullptr;
  g_list woken = poll_once(now, last);
  const bool nobody_waits = p->runq.empty() && sched.global_size.load(relaxed) == 0;
  const bool one_may_pass = p->runq.ring_empty() ? !woken.empty() : woken.size() == 1;
  if (nobody_waits || (one_may_pass && may_pass(p, now))) return take_first(p, woken);
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
  return take_first(p, woken);
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

// Takes a goroutine from the global queue if that was never empty at this P's looks for `waits_for_long`, and this P
// has not taken from it. The queue's regular turn comes once in so many time slices. If something such as a ticker ends
// time slices before they are used up, and the goroutines that share a slice run for long, that turn would take seconds
// to come. The first look only notes the time: a goroutine that has used up its time slice, and gave way to the others,
// lies in the global queue a moment later, and must not come before them.
G* overdue_one(P* p, nanos now) noexcept {
  if (sched.global_size.load(relaxed) == 0) {
    p->global_waits_since = 0;
    return nullptr;
  }
  if (p->global_waits_since == 0) p->global_waits_since = now;
  if (now - p->global_waits_since < waits_for_long || batch_waits(p)) return nullptr;
  return global_one(p, 0);
}

// The same for the head of p's ring. It waits for long if goroutines that the poller wakes, and goroutines that make
// each other runnext, begin one time slice after the other: no slice is ever used up then. The one that is next goes
// behind the ring, so that all of the ring has its turn now, and not one goroutine at a time.
G* overdue_in_ring(P* p, nanos now) noexcept {
  const bool empty = p->runq.ring_empty();
  const std::uint32_t head = p->runq.head(), before = std::exchange(p->waiting_head, empty ? head - 1 : head);
  if (empty || head != before) p->ring_waits_since = now;
  if (now - p->ring_waits_since < waits_for_long) return nullptr;
  next_behind_others(p);
  return ring_one(p);
}

// True if the global queue comes first now. Not if a timer was due, which goes first; then at the next look.
bool takes_turn_of_global_queue(P* p, bool ran_timer) noexcept {
  if (std::exchange(p->missed_turn, false)) return true;
  const bool turn = is_turn_of_global_queue(p);
  p->missed_turn = turn && ran_timer;
  return turn && !ran_timer;
}

P* some_idle_p() noexcept {
  lock_guard hold(sched.mutex);
  return idle_p_get();
}

bool some_m_idles() noexcept {
  lock_guard hold(sched.mutex);
  return sched.idle_m_list != nullptr;
}

// Returns when the earliest timer is due, with most stopped timers left out (timer_heap::tidy): no M should sleep for a
// stopped timer, and stopped timers must not hide a deadlock.
nanos tidy_timers() noexcept {
  std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) sched.all_ps[i].load(acquire)->timers.tidy();
  return earliest_timer();
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

// True if an M other than m, which had nothing else to do, has looked into the poller a moment ago, and found
// something. Most likely it will be done with that in a moment, and look again.
bool another_polls(const M* m) noexcept {
  return sched.spare_looker.load(relaxed) != m && nanotime() - sched.spare_look.load(relaxed) < look_every;
}

// True at most once for each time that help was wanted.
bool may_doze(const M* m) noexcept {
  if (!sched.help_wanted.exchange(false, relaxed)) return false;
  if (sched.shutting_down.load(relaxed) || sched.world_stopping.load(relaxed)) return false;
  if (sched.idle_ps.load(relaxed) >= sched.procs.load(relaxed)) return false;
  return another_polls(m) ? !timer_wants_poller(forever) : !poller_is_wanted(forever);
}

bool all_serve_themselves() noexcept {
  if (sched.global_size.load(relaxed) != 0 || newcomers_may_begin()) return false;
  const std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!sched.idle_mask.has(i) && !serves_itself(sched.all_ps[i].load(acquire))) return false;
  }
  return true;
}

// If m stays away, what is ready is declared to be crumbs. This comes before D1, so that no thread rouses the dozer for
// goroutines that are crumbs by now.
bool begins_to_stay_away(M* m) noexcept {
  if (sched.dozer.load(relaxed)) return false;  // there can be only one
  const bool away = m->help.begin_doze(work_done_now());
  if (away) hold_all_to_be(spoils::crumbs);
  return away;
}

bool stays_away(M* m) noexcept {
  if (!m->help.is_away()) return false;
  if (m->help.stays_away(work_done_now())) return true;
  hold_all_to_be(spoils::work);  // the Ms that come with it must not take it for crumbs
  return false;
}

// Dozing. Two goroutines that talk to each other on one P make work ready a million times a second, and the P itself
// will run that work in a moment. If each M that came to help and found nothing went to sleep, the next such wake-up
// would wake a thread again, and so on: half of the time would go into waking and sleeping. So an M that was wanted,
// spun, and found nothing sleeps for a bounded time and then looks again. It counts as spinning meanwhile, so nobody
// wakes another M. It goes on like this as long as help was wanted during its last doze.
//
//     a thread that makes work ready                the dozer, without a P
//     A1  append it                                 D1  dozer = itself (seq_cst)
//     A2  spinning != 0: more than runnext?         D2  look at every queue, then sleep `doze_time`
//         then swap dozer for null and wake it          again and again, while all serve themselves (steal.cpp)
//                                                   D3  swap dozer for null; taken: wait for the wake-up
//                                                   D4  look at every queue; at last S2, S3
//
//     Work beyond runnext is not delayed: if A2 reads no dozer, D1 comes later and D2 sees A1. A goroutine that lies in
//     runnext while its P computes waits for the end of a sleep and D4, `doze_time`. So do crumbs (steal.cpp), or twice
//     as long if their P has just turned from short goroutines to a long one. Nothing is lost, as S3 comes in the end.
//
// If a timer is pending, or somebody waits for a descriptor, and no M sleeps in the poller, then this one does so, and
// does not doze. But beside an M that serves a connection it would take the next message from that one, which then
// wakes it for its own next goroutine, and so on. So it dozes if no timer is pending and another_polls. That is a guess
// (hence relaxed): if the other M begins to compute, descriptors wait for the end of the doze, S3 and P1.
//
// Where help was of no use lately, the dozer stays away (help_trial.cpp). The goroutines in rings are crumbs then.
// Those that lay in the global queue when an M last gave its P up are treated alike: they wait for D4, which comes
// after the first sleep at whose end the P that runs is no longer quick.
//
// Returns true if the M has a P again: there may be work.
bool doze(M* m) noexcept {
  if (m->pins != 0) return false;  // goroutines that are pinned to m would not end its sleep
  while (may_doze(m)) {
    const bool away = begins_to_stay_away(m);
    M* nobody = nullptr;
    if (!sched.dozer.compare_exchange_strong(nobody, m, seq_cst, relaxed)) return false;  // D1
    barrier_to_who_is_alone();                                                            // S2b
    if (away && m->help.is_of_all()) sched.all_leave_to.store(m, relaxed);
    if (look_beyond_next(away ? sched.left_in_global.load(relaxed) : 0) != queued::work) {  // D2
      while (!m->parked.sleep_until(nanotime() + doze_time) && (stays_away(m) || all_serve_themselves()) &&
             may_doze(m)) {}
    }
    if (sched.all_leave_to.load(relaxed) == m) sched.all_leave_to.store(nullptr, relaxed);
    M* me = m;
    if (!sched.dozer.compare_exchange_strong(me, nullptr, seq_cst, relaxed)) m->parked.sleep();  // D3
    m->parked.clear();
    if (look_at_queues() != queued::nothing) {  // D4
      if (P* p = some_idle_p()) {
        acquirep(m, p);
        return true;
      }
    }
  }
  return false;
}

// True if fewer than half of the busy Ps have an M that looks for work. A dozer counts as spinning, and so does an M
// that has promised to do all the work (burst.cpp), but neither of them looks.
bool may_spin() noexcept {
  std::uint32_t look = sched.spinning.load(relaxed);
  if (look > 0 && sched.dozer.load(relaxed)) --look;
  if (look > 0 && sched.promiser.load(relaxed)) --look;
  return 2 * look < sched.procs.load(relaxed) - sched.idle_ps.load(relaxed);
}

// Blocks in the poller until something is ready, or until the time `until`; 0: no limit.
void poll_network_until(nanos until, g_list& woken) noexcept {
  if (sched.shutting_down.load(seq_cst)) {
    poll_network(0, woken);
  } else if (until == 0) {
    poll_network(-1, woken);
  } else if (wants_to_be_on_time(until)) {
    poll_network_punctually(until, woken);
  } else {
    poll_network(std::max<nanos>(until - nanotime(), 0), woken);
  }
}

// The last resort: sleeps in the poller until something is ready or the earliest timer is due, if no other M does.
//
//     a thread that arms a timer (timing.cpp)       the sleeper, without a P
//     T1  put it into a heap, or lower the hint     P1  last_poll = 0
//     T2  last_poll == 0: break the sleep off, if   P2  read the hints of all heaps again
//         poll_until is later than the timer        P3  poll_until = the earliest; sleep that long
//         last_poll != 0: wake an M, if a P idles
//
//     If T2 reads last_poll before P1, P2 sees T1: the hints are never too late (timer_heap.hpp). Otherwise T2 reads
//     poll_until. It gets either what P3 stored, and no M sleeps longer than that; or the 0 from before P3, which
//     stands for "for ever", and breaks off a sleep in vain. The M that T2 wakes may find the poller taken. It breaks
//     off a sleep that is too long for its timer: it cannot know that P2 has seen that timer.
//     The model is tests/model/poller.pml.
//
// Returns true if the M has a P again: it runs *g at once, or looks for work if *g is null. False: it has none, and
// there is nothing to wait for here.
bool sleep_in_poller(M* m, nanos until, bool was_spinning, G** g) noexcept {
  if (!anybody_waits_for_io() && until == 0) {
    // An M that still sleeps in the poller does so for a timer that was stopped since, or for a descriptor whose wait a
    // deadline or a close has ended. It must go to sleep as we do, since the deadlock check counts the Ms that have. If
    // it goes to the poller only now, it sees that nobody waits (below).
    if (sched.last_poll.load(seq_cst) == 0) netpoll_break();
    return false;
  }
  if (sched.last_poll.exchange(0, seq_cst) == 0) {  // P1
    // Another M sleeps in the poller, and must not sleep longer than our timers allow.
    if (until != 0) {
      nanos theirs = sched.poll_until.load(seq_cst);
      if (theirs == 0 || theirs > until) netpoll_break();
    }
    return false;
  }
  nanos again = earliest_timer();  // P2
  until = earlier(until, again);
  sched.poll_until.store(until, seq_cst);  // P3
  g_list woken;
  if (WEFT_UNLIKELY(m->pins != 0)) m->in_poller.store(true, seq_cst);                // L1
  if (WEFT_UNLIKELY(m->pins != 0) && m->requests.load(seq_cst) & request::pinned) {  // L2
    poll_network(0, woken);
  } else if (again == 0 && !anybody_waits_for_io()) {
    // Our timer was stopped since we looked, or the wait for the descriptor was ended, and the M that did so may have
    // gone to sleep before P1. Polls without blocking and looks again, to go to sleep as that M did.
    poll_network(0, woken);
  } else if (WEFT_UNLIKELY(sched.out_of_threads.load(seq_cst))) {  // after P1 (start_new_m)
    poll_network(0, woken);
  } else {
    poll_network_until(until, woken);
  }
  if (WEFT_UNLIKELY(m->pins != 0)) m->in_poller.store(false, relaxed);  // one break too many does no harm
  nanos now = nanotime();
  sched.poll_until.store(0, seq_cst);
  sched.last_poll.store(now, seq_cst);
  sched.coarse_now.store(now, relaxed);

  if (!sched.shutting_down.load(acquire)) {
    lock_guard hold(sched.mutex);
    if (!take_p_for_want_of_thread(m) && !sched.world_stopping.load(relaxed)) {
      if (P* p = idle_p_get()) acquirep(m, p);
    }
  }
  P* p = m->p.load(relaxed);
  if (!p) {
    ready_all(woken);
    return false;
  }
  begin_burst(m, now);
  if (G* first = woken.pop_front()) {
    first->set_state(g_state::waiting, g_state::runnable);
    p->count.wakeups.add();
    ready_all(woken);
    *g = first;
  } else if (!m->spinning.load(relaxed) && (was_spinning || (until != 0 && now >= until))) {
    start_spinning(m);  // the timer may be in any P's heap
  }
  return true;
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
// poller would cost this M its P, and a wake-up of the next M. After `looks_before_stealing` looks in a row the M
// steals instead, so that the queues of the other Ps are not forgotten.
G* take_shared(M* m, P* p, nanos* now) noexcept {
  judge_last_theft(m, p);
  if (G* g = global_one(p, 0)) return g;
  if (G* g = take_newcomer(p)) return g;
  if (*now == 0) *now = nanotime();
  if (m->looks < looks_before_stealing) {
    ++m->looks;
    if (G* g = poll_before_stealing(m, p, *now)) return g;
  }
  m->looks = 0;
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

nanos earliest_timer() noexcept {
  nanos least = 0;
  std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!sched.timer_mask.has(i)) continue;
    least = earlier(least, sched.all_ps[i].load(acquire)->timers.wake_when());
  }
  return least;
}

bool wants_to_be_on_time(nanos when) noexcept {
  std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (sched.all_ps[i].load(acquire)->timers.punctual_until() >= when) return true;
  }
  return false;
}

// Does nothing if the goroutine that used the slice up is the woken one that passed.
void note_slice_used_up(P* p) noexcept {
  if (p->sched_tick.load(relaxed) != p->pass_slice) p->passed_at = 0;
}

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
