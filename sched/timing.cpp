// Timers meet the scheduler: arming, sleeping, and telling the poller that it sleeps too long.

#include "sched/timing.hpp"

#include "netpoll/netpoll.hpp"
#include "netpoll/poll_desc.hpp"
#include "runtime/prefetch.hpp"
#include "sched/park.hpp"
#include "sched/proc.hpp"
#include "sched/syscall.hpp"

namespace weft::rt {

namespace {

// Returns the P whose heap takes a new timer: the current P. The caller is inside the runtime, so the P stays. A thread
// without a P uses the first P.
P* p_for_timers(M* m) noexcept {
  P* p = p_of(m);
  return p ? p : sched.all_ps[0].load(acquire);
}

// "comes by": the last goroutine of m's P has just parked. m goes on to find_runnable and, if it finds nothing, sleeps
// until this timer itself; if m is tied to a goroutine, handoffp tells the poller of the timer. If m finds work,
// `schedule` sends another M for a timer that is due within 20 ms (timer_wants_poller); sysmon sees to later ones. This
// does not hold if an M sleeps in the poller: that sleep may be too long, and `schedule` sends no M then. An M that
// goes to sleep in the poller after that look sees the timer (P2). The model is tests/model/poller.pml, -DCOMES_BY.
bool comes_by(M* m, P* p) noexcept { return m && m->g == &m->g0 && p->runq.empty(); }

enum class precision : bool { with_others, punctual };

void after_arming(M* m, P* p, nanos when, bool earliest, precision wanted) noexcept {
  p->next_look.store(1, relaxed);  // the dispatcher plans anew
  // The rough clock is fresh where it matters: where Ms sleep in the poller and come back.
  if (wanted == precision::punctual && when - sched.coarse_now.load(relaxed) <= punctual_wait)
    p->timers.expect_punctual(when);
  if (!earliest) return;
  if (sched.last_poll.load(seq_cst) != 0 && comes_by(m, p)) return;
  wake_net_poller(when);
  if (!m && sched.idle_ps.load(relaxed) == 0) want_p_of_a_call();
}

struct sleep_timer : timer {
  G* g = nullptr;
  bool with_others = false;
};

// Loads the sleeper's frames before it is made ready: of many sleepers that are due at a time none is in the cache. The
// timer lies in the sleeper's own frames: a little below it is where the goroutine goes on.
void wake_sleeper(timer* t, std::uint64_t, nanos) noexcept {
  load_lines(reinterpret_cast<const std::byte*>(t) - 2 * 64, 2 + lines_of_frames);
  ready(static_cast<sleep_timer*>(t)->g);
}

// Once t is in the heap it may fire, and be gone.
void arm(M* m, timer* t, precision wanted) noexcept {
  P* p = p_for_timers(m);
  nanos when = t->when;
  bool earliest = p->timers.add(t);
  after_arming(m, p, when, earliest, wanted);
}

void commit_sleep(G* g, void* arg) noexcept {
  auto* t = static_cast<sleep_timer*>(arg);
  arm(static_cast<M*>(g->thread), t, t->with_others ? precision::with_others : precision::punctual);
}

}  // namespace

void arm_timer(M* m, timer* t) noexcept { arm(m, t, precision::punctual); }

bool rearm_timer(M* m, timer* t, const timer_setting& to) {
  P* p = p_for_timers(m);
  change_result r = change_timer(p->timers, t, to);
  after_arming(m, p, to.when, r.earliest, precision::punctual);
  return r.was_pending;
}

bool stop_timer(M* m, timer* t) noexcept {
  P* p = p_of(m);
  return del_timer(t, p ? &p->timers : nullptr);
}

void set_io_deadline(M* m, poll_desc* pd, poll_mode mode, nanos deadline) {
  P* p = p_for_timers(m);
  g_list woken;
  deadline_result r = poll_set_deadline(p->timers, pd, mode, deadline, woken);
  if (r.when != 0) after_arming(m, p, r.when, r.earliest, precision::punctual);
  while (G* g = woken.pop_front()) {
    if (g->claim(no_ticket)) ready(g);
  }
}

nanos check_timers(P* p, const P* mine, bool may_clear, nanos* now, bool* ran) {
  nanos next = p->timers.wake_when();
  if (next == 0) return 0;
  if (*now == 0) *now = nanotime();
  return p->timers.check(*now, may_clear, ran, std::max(1u, mine->runq.room() / 2));
}

// T2 of sleep_in_poller (poller_sleep.cpp), after T1.
void wake_net_poller(nanos when) noexcept {
  if (sched.last_poll.load(seq_cst) == 0) {
    // An M sleeps in the poller, until poll_until. If that is not stored yet (P3), this reads 0, "for ever", and breaks
    // the sleep off: it is not known whether the sleeper's look at the heaps before it (P2) has seen this timer.
    nanos until = sched.poll_until.load(seq_cst);
    if (until == 0 || until > when) netpoll_break();
  } else if (sched.idle_ps.load(seq_cst) != 0) {
    // No M sleeps in the poller: a timer is work like a goroutine, and some M has to wait for it.
    wakep();
  }
}

M* sleep_until(M* m, sleep_end end) {
  m->p.load(relaxed)->timers.make_room();
  sleep_timer t;  // on this stack: it leaves the heap before its function runs, and only that function ends this wait
  t.when = end.at;
  t.function = wake_sleeper;
  t.g = m->g;
  t.with_others = end.with_others;
  return park(m, commit_sleep, &t, wait_reason::sleep);
}

}  // namespace weft::rt
