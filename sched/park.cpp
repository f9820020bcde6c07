#include "sched/park.hpp"

#include "runtime/deadline_clock.hpp"
#include "runtime/stack_use.hpp"
#include "sched/alone.hpp"
#include "sched/blocks.hpp"
#include "sched/find.hpp"
#include "sched/hazard.hpp"
#include "sched/latency.hpp"
#include "sched/lifecycle.hpp"
#include "sched/locked.hpp"
#include "sched/pin.hpp"
#include "sched/proc.hpp"
#include "sched/runqueues.hpp"
#include "sched/spawn.hpp"
#include "sched/steal.hpp"
#include "sched/timing.hpp"

#include <algorithm>
#include <sched.h>
#include <utility>

namespace weft::rt {

namespace {

constexpr std::uint64_t longest_talk_us = 10'000;  // a time slice

// True if the M has to go by its scheduler's loop before it runs the next goroutine.
inline bool must_visit_scheduler(const M* m, const P* p) noexcept {
  return m->g->locked_to_thread() || dispatcher_is_due(m, p);
}

// Two goroutines that make each other runnext share a time slice. So that the slice does not get long, now and then the
// goroutine at the head of the ring comes first, or one from the global queue, which the scheduler visits only once in
// so many time slices. The head of the ring does not come first if the ring has been served since the last look: a
// goroutine that is woken in a chain would only lose its place to the beginning of the chain, which would then work
// ahead.
//
// If those that were let in take long, the two that talk go on for as long as each of these took, when they come back:
// else they would have so many words for each time slice of each of the others. Time in which the P idled does not
// count (idle_p_put). sysmon ends their slice as any other.
WEFT_NOINLINE G* let_others_in(P* p, G* next) noexcept {
  p->others_at = p->count.inherited.get() + others_every;
  look_now_and_then_whether_alone(p);
  const std::uint64_t now = cpu_ticks(), passed = now - std::exchange(p->looked_at, now);
  const bool ring_is_served = std::exchange(p->head_at_look, p->runq.head()) != p->runq.head();
  const std::uint64_t longest = longest_talk_us * cpu_tick_rate.per_us, slices = p->sched_tick.load(relaxed);
  if (ring_is_served && p->let_in_at != 0) {
    const std::uint64_t each = passed / std::max<std::uint64_t>(slices - std::exchange(p->let_in_at, 0), 1);
    p->talk_until = now + std::min(each, longest);
  }
  // If the counter was set back, as when a machine was moved, the time is over at once.
  if (p->talk_until > now && p->talk_until - now <= longest) return next;
  G* g = ring_is_served ? nullptr : ring_one(p);
  if (!g) g = global_one(p, 0);
  if (!g) return next;
  p->let_in_at = slices;
  p->head_at_look = p->runq.head();
  put_back(p, next);
  return g;
}

// Returns the goroutine to switch to without going by the scheduler's loop, or null. A goroutine that has not begun is
// given a stack, unless the caller has one to `leave` it. But it is not given a new stack: making one takes system
// calls, and the lock that `commit` gives back would be held meanwhile.
enum class stack_to { keep, leave };
[[gnu::always_inline]] inline G* next_local(M* m, P* p, stack_to s) noexcept {
  G* next = p->runq.get_next();
  G* g = next;
  if (!next) {
    g = ring_one(p);
    if (!g) return nullptr;
    p->cold.load_ahead_of(p->runq.head());
  } else if (WEFT_UNLIKELY(p->count.inherited.get() >= p->others_at)) {
    g = let_others_in(p, next);
  }
  if (WEFT_UNLIKELY(g->marks() & mark::for_dispatcher)) {
    count_latency(p, g);
    if (g->locked_to_thread() || (g->marks() & mark::pinned_to_thread && g->tied_to != m)) {
      m->picked = g;
      return nullptr;
    }
  }
  if (s == stack_to::keep && WEFT_UNLIKELY(!g->context)) {
    if (!begins_at_once(p, g)) {
      m->picked = g;
      return nullptr;
    }
    begin(p, g);
  }
  count_dispatch(p, g == next);
  g->set_state(g_state::runnable, g_state::running);
  return g;
}

// Counts the wake-up of g, which goes to a queue of p. If p is null it goes to the global queue, and sched.mutex is
// held.
inline void count_wakeup(P* p, G* g) noexcept {
  if (p) {
    time_one_in_64(g, p->count.wakeups.add());
  } else {
    time_one_in_64(g, sched.foreign_wakeups.fetch_add(1, relaxed));
  }
}

M* owner_of(G* g) noexcept { return static_cast<M*>(g->thread); }

// Parks a foreign thread. False: the deadline has passed.
bool park_foreign(G* g, after_switch commit, void* arg, nanos deadline) noexcept {
  g->thread_note.clear();
  if (commit) commit(g, arg);
  return g->thread_note.sleep_until(deadline);
}

// Claims the foreign thread's own wait. False: another party had claimed it, and has woken the thread by now.
bool claim_for_itself(G* g, wait_ticket ticket) noexcept {
  if (!g->claim(ticket)) {
    g->thread_note.sleep();
    return false;
  }
  g->set_state(g_state::waiting, g_state::running);
  return true;
}

// --- timed waits

// The timer of one timed wait. It may stay in some heap after the wait (stopped timers are cleaned out lazily), so it
// has memory of its own, which is counted: the waiter holds a reference and the heap another.
struct wait_timer : timer {
  G* g = nullptr;
  wait_ticket ticket = 0;
};

void dispose_wait_timer(timer* t) noexcept {
  static_cast<wait_timer*>(t)->~wait_timer();
  block_put(t, sizeof(wait_timer));
}
static_assert(fits_block(sizeof(wait_timer), alignof(wait_timer)));

void wait_timed_out(timer* wait, std::uint64_t, nanos) noexcept {
  auto* t = static_cast<wait_timer*>(wait);
  if (!t->g->claim(t->ticket)) return;
  t->g->wake_value = t;  // the timer ended the wait
  ready(t->g);
}

struct timed_commit {
  after_switch commit;
  void* arg;
  wait_timer* timer;
};

void commit_timed(G* g, void* arg) noexcept {
  // The timer is armed first, so that the other party of the wait finds a wait that is complete. All of this frame is
  // read before that: once the timer is armed it may fire, and the goroutine may run. The goroutine gets no further
  // than the lock that `commit` gives back. So a timed wait holds such a lock, or has no `commit`.
  timed_commit c = *static_cast<timed_commit*>(arg);
  arm_timer(owner_of(g), c.timer);
  if (c.commit) c.commit(g, c.arg);
}

// A lock of weft's may be held, and a goroutine that wants it would never get to run.
[[noreturn]] WEFT_NOINLINE void fatal_wait_inside(const G* g) noexcept {
  fatal(
      "goroutine {} waits inside an operation of weft: a move constructor, a conversion or a destructor of a channel's "
      "values may not wait",
      g->id);
}

}  // namespace

M* park(M* m, after_switch commit, void* arg, wait_reason why) noexcept {
  G* g = current_g(m);
  g->reason = why;
  g->set_state(g_state::running, g_state::waiting);
  if (WEFT_UNLIKELY(!m)) {
    park_foreign(g, commit, arg, forever);
    return nullptr;
  }
  if (WEFT_UNLIKELY(m->depth.load(relaxed) != 1)) fatal_wait_inside(g);
  P* p = m->p.load(relaxed);
  p->count.parks[static_cast<std::size_t>(why)].add();
  g->wait_since.store(sched.coarse_now.load(relaxed), relaxed);
  if (WEFT_UNLIKELY(stack_canaries_in_use())) stack_check_canary(g);
  G* next = nullptr;
  if (WEFT_UNLIKELY(must_visit_scheduler(m, p))) {
    if (m->requests.load(relaxed) & request::hazard) return suspend_in_hazard(m, commit, arg);
  } else {
    next = next_local(m, p, stack_to::keep);
  }
  m->left.from_park = __builtin_return_address(0);
  // One switch for both cases: reports put together the goroutines that stand at the same places.
  m = static_cast<M*>(switch_to(m, next ? next : &m->g0, commit, arg));
  return come_back(m->left.from_park, m);
}

WEFT_NOINLINE M* suspend(M* m, after_switch commit, void* arg) noexcept {
  if (WEFT_UNLIKELY(m->requests.load(relaxed) & request::hazard)) return suspend_in_hazard(m, commit, arg);
  return static_cast<M*>(switch_to(m, &m->g0, commit, arg));
}

M* park_until(M* m, wait_ticket ticket, after_switch commit, void* arg, wait_reason why, nanos deadline,
              bool* timed_out) {
  *timed_out = false;
  if (deadline == forever) return park(m, commit, arg, why);
  if (!m) {
    G* g = this_thread()->g;
    g->reason = why;
    g->set_state(g_state::running, g_state::waiting);
    park_foreign(g, commit, arg, deadline);
    *timed_out = claim_for_itself(g, ticket);
    return nullptr;
  }
  m->p.load(relaxed)->timers.make_room();
  auto* t = ::new (block_take(sizeof(wait_timer))) wait_timer;
  t->g = m->g;
  t->ticket = ticket;
  t->when = std::max<nanos>(deadline, 1);
  t->function = wait_timed_out;
  t->dispose = dispose_wait_timer;
  t->references.store(2, relaxed);
  m->g->wake_value = nullptr;
  timed_commit c{commit, arg, t};
  m = park(m, commit_timed, &c, why);
  *timed_out = m->g->wake_value == t;
  if (!*timed_out) stop_timer(m, t);
  t->release();
  return m;
}

M* park_until_run_ends(M* m, std::uint64_t run, wait_ticket ticket, after_switch commit, void* arg, wait_reason why,
                       nanos deadline, bool* timed_out) {
  if (m) return park_until(m, ticket, commit, arg, why, deadline, timed_out);
  G* g = this_thread()->g;
  g->reason = why;
  g->set_state(g_state::running, g_state::waiting);
  auto next_look = [=] { return std::min(deadline, nanotime() + foreign_look_again); };
  // The thread keeps its place in the queues meanwhile.
  nanos until = next_look();
  bool woken = park_foreign(g, commit, arg, until);
  while (!woken && until < deadline && !is_over(run)) {
    until = next_look();
    woken = g->thread_note.sleep_until(until);
  }
  *timed_out = claim_for_itself(g, ticket);
  return nullptr;
}

void ready_without_prefetch(M* m, G* g, run_next when) noexcept {
  if (g->kind == g_kind::foreign) {
    g->set_state(g_state::waiting, g_state::running);
    g->thread_note.wakeup();  // the thread may be gone at the next instruction
    return;
  }
  P* p = p_of(m);
  help h = help::now;
  if (WEFT_LIKELY(p != nullptr)) {
    WEFT_CHECK(m->depth.load(relaxed) > 0, "ready({}) outside the runtime", g->id);
    g->set_state(g_state::waiting, g_state::runnable);
    count_wakeup(p, g);
    h = runqput_next(p, g, when);  // A1
  } else {
    lock_guard hold(sched.mutex);
    if (!sched.running.load(relaxed) || sched.shutting_down.load(relaxed)) return;  // g never runs again
    if (g->get_state() == g_state::abandoned) return;                               // claimed in a run() that is over
    g->set_state(g_state::waiting, g_state::runnable);
    count_wakeup(nullptr, g);
    global_put(g);
  }
  wake_for_work(p, h);  // A2
}

// The goroutines go behind all that waits already: into this P's ring, and those for which it has no room to the end of
// the global queue. If others are in the global queue by then, all go there. If these goroutines displaced half of a
// full ring, as a single goroutine does (runqueues.cpp), goroutines whose sockets are ready again soon would keep the
// ring among themselves. The displaced ones would wait for their one time slice in 61: for seconds, among thousands.
void ready_all(g_list& gs) noexcept {
  if (gs.empty()) return;
  M* m = this_m();
  P* p = p_of(m);
  auto next = [&]() -> G* {
    while (G* g = gs.pop_front()) {
      if (!p && g->get_state() == g_state::abandoned) continue;  // claimed in a run() that is over
      g->set_state(g_state::waiting, g_state::runnable);
      count_wakeup(p, g);
      return g;
    }
    return nullptr;
  };
  if (p && sched.global_size.load(relaxed) == 0) {
    for (std::uint32_t room = p->runq.room(); room > 0; --room) {
      G* g = next();
      if (!g) break;
      runqput(p, g);
    }
  }
  while (!gs.empty()) {
    lock_guard hold(sched.mutex);
    if (!p && (!sched.running.load(relaxed) || sched.shutting_down.load(relaxed))) return;  // they never run again
    for (int i = 0; i < 128; ++i) {  // there may be a million, and others want the lock
      G* g = next();
      if (!g) break;
      global_put(g);
    }
  }
  // One helper looks for work, and wakes the next if it finds some. A thread without a P cannot run them itself.
  wake_for_work(p);
}

G* ready_all_but_first(P* p, g_list& gs) noexcept {
  G* first = gs.pop_front();
  if (!first) return nullptr;
  first->set_state(g_state::waiting, g_state::runnable);
  p->count.wakeups.add();
  ready_all(gs);
  return first;
}

// --- giving way

namespace {

// Puts g behind everything that is runnable now. If goroutines wait in the global queue, that is its end: this P comes
// to the global queue after its own queue. But as long as a batch from there waits in the ring, g goes behind that
// batch, and changes places with the next one in time (ring_one). So where more goroutines yield than a ring holds,
// each batch takes sched.mutex, not each yield.
[[gnu::always_inline]] inline void put_last(P* p, G* g) noexcept {
  if (WEFT_UNLIKELY(sched.global_size.load(relaxed) != 0)) {
    if (!batch_waits(p) && !p->yielded_behind_batch) {
      lock_guard hold(sched.mutex);
      return global_put(g);
    }
    p->yielded_behind_batch = true;
  }
  runqput(p, g);
}

void queue_again(G* g, void*) noexcept {
  P* p = owner_of(g)->p.load(relaxed);
  put_last(p, g);                       // A1
  wake_for_work(p, more_than_next(p));  // A2
}

// Called now and then if no other goroutine is to be run here. Steals one, as an M without work would: if no P idles,
// nobody else takes what waits behind a goroutine that computes. False: there is none.
bool picks_from_others(M* m, P* p) noexcept {
  if (sched.idle_ps.load(relaxed) != 0 || m->g->marks() & mark::tied) return false;
  nanos now = 0;
  m->picked = steal_work(m, p, thief_takes::crumbs_too, &now).g;
  return m->picked != nullptr;
}

// No other goroutine is to be run here. What the caller waits for may be done by a thread that waits for this
// processor: that of another P, of a blocking() call, or of the program.
M* thread_gives_way(M* m) noexcept {
  leave_runtime(m);
  ::sched_yield();
  return enter_runtime();
}

}  // namespace

M* yield_now(M* m) noexcept {
  G* g = m->g;
  P* p = m->p.load(relaxed);
  if (WEFT_UNLIKELY(m->depth.load(relaxed) != 1)) fatal_wait_inside(g);
  p->count.yields.add();
  if (WEFT_UNLIKELY(stack_canaries_in_use())) stack_check_canary(g);
  if (WEFT_UNLIKELY(must_visit_scheduler(m, p))) {
    if (g->locked_to_thread()) next_behind_others(p);  // before g: with g in the ring, next would come behind it
    g->set_state(g_state::running, g_state::runnable);
    return suspend(m, queue_again, nullptr);
  }
  G* next = next_local(m, p, stack_to::keep);
  if (!next && !m->picked && sched.global_size.load(relaxed) == 0) {
    if (++m->yields_in_vain % looks_of_vain_yields != 0) return m;
    if (!picks_from_others(m, p)) return thread_gives_way(m);
  }
  g->set_state(g_state::running, g_state::runnable);
  m->left.from_park = __builtin_return_address(0);
  if (next && sched.idle_ps.load(seq_cst) == 0 && p->runq.unshared()) {
    // idle_ps is read first: whoever takes an idle P ends `unshared` before it lowers idle_ps (idle_p_get), so 0 and
    // `unshared` together mean that there is only this P. g may lie in its queue, or in the global one, before it has
    // left its stack: only the owner of a P takes from either, and only afterwards. A thread that stops the world, to
    // look at stacks or to make more Ps, waits until this M has left the runtime.
    put_last(p, g);
    return static_cast<M*>(switch_to(m, next, nullptr, nullptr));
  }
  return static_cast<M*>(switch_to(m, next ? next : &m->g0, queue_again, nullptr));
}

namespace {

void untie(M* m) noexcept {
  G* g = m->g;
  if (g->pin_depth != 0) {
    g->pin_depth = 1;
    unpin(m);
  }
  if (g->lock_depth != 0) end_locked(m);
}

}  // namespace

last_step end_goroutine() noexcept {
  M* m = enter_runtime();
  G* g = m->g;
  P* p = m->p.load(relaxed);
  if (WEFT_UNLIKELY(stack_canaries_in_use())) stack_check_canary(g);
  if (WEFT_UNLIKELY(g->marks() & mark::tied)) untie(m);
  if (!g->is_system()) p->count.ended.add_release();
  G* next = WEFT_UNLIKELY(must_visit_scheduler(m, p)) ? nullptr : next_local(m, p, stack_to::leave);
  g->set_state(g_state::running, g_state::dead);
  if (next && !next->context) {
    // The next goroutine can begin on this stack, where the present one ends, without a switch, if it needs no stack of
    // its own.
    if (!next->own_stack && g->own_stack->origin == sched.default_stacks.load(relaxed) &&
        !measuring_stacks.load(relaxed)) {
      begin_in_place(m, g, next);
      recycle(p, g);
      leave_runtime(m);
      return {next, nullptr};
    }
    begin(p, next);
  }
  return {next ? next : &m->g0, [](G* dead, void*) { recycle(owner_of(dead)->p.load(relaxed), dead); }};
}

}  // namespace weft::rt
