// The scheduler: matching work (runnable goroutines, due timers, ready descriptors) with Ms and Ps.
//
// The goal: while there is work and a processor to spare, somebody works on it; while there is none, nobody burns a
// processor. Both are easy apart and hard together, because work is made ready in one place and Ms go to sleep in
// another. Three simple designs fail:
//   - one central state under one lock: each spawn and each wake-up would meet there;
//   - pass a P on directly whenever work is made ready: the thread that gets it wakes to work that its maker would
//     have run in a microsecond, and both lose their caches;
//   - wake a thread for each piece of work and let it look for itself: threads go to sleep and wake without end.
//
// The design is Go's. An M that has no work "spins": it looks at all queues for a bounded time. Whoever makes work
// ready wakes one M, as a spinning one, if a P idles and nobody spins (wakep). The M that finds work stops spinning,
// and wakes the next if it sees more (resetspinning). So parallelism unfolds step by step, and a burst of ready
// goroutines does not wake a thundering herd. Go's M wakes the next without a look; where one goroutine is ready at a
// time, each of these is a thread woken in vain.
//
// append-check-wake, the protocol that loses no wake-up:
//
//     who makes work ready                          an M that finds nothing (find.cpp)
//     A1  append it to a queue, a heap              S1  put the P on the idle list: ++idle_ps (seq_cst)
//         (seq_cst store: full barrier)             S2  if it was spinning: --spinning (seq_cst)
//     A2  spinning == 0 and idle_ps != 0?           S3  look at every queue, heap and the poller again
//         then wake one                             S4  found something: take a P again, spin again
//
//     If A2 reads idle_ps == 0, some S1 comes after it in the single order of seq_cst operations, and its S3 sees
//     A1. If A2 reads spinning != 0, the same holds for that M's S2 and S3, or it finds work while it spins, and
//     then resetspinning does S2 and looks as S3 does, and wakes one.
//     Otherwise A2 wakes one. What only this P can run (its own queue, while it runs) is never lost either way; the
//     protocol decides whether somebody else may help.
//
//     An M may doze between giving up its P and S2, still counted as spinning (find.cpp). What is hardly worth a theft
//     is left to that one (steal.cpp).
//
//     While a goroutine moves from queue to queue, S3 may find it in neither. So whoever moves one does it in the order
//     in which S3 looks (global_get: into the ring, then global_size), or makes it ready anew, with A2 (put_back,
//     runqput_full's callers), or looks as S3 does afterwards (a thief, in resetspinning).
//
//     Go looks again only after spinning, and keeps a flag (needspinning) for the M that gives up its P without having
//     spun (issue 45867). Looking again always costs one read per P before a sleep, and needs no flag.
//
// What an M may lack: an M in a system call left its P behind (syscall.cpp), a detached one lost it (preempt.cpp). It
// may then use nothing that belongs to a P.

#include "sched/proc.hpp"

#include "netpoll/netpoll.hpp"
#include "runtime/turns.hpp"
#include "sched/find.hpp"
#include "sched/hazard.hpp"
#include "sched/latency.hpp"
#include "sched/lifecycle.hpp"
#include "sched/locked.hpp"
#include "sched/newcomers.hpp"
#include "sched/pin.hpp"
#include "sched/runqueues.hpp"
#include "sched/spawn.hpp"
#include "sched/timing.hpp"

#include <cerrno>
#include <fmt/format.h>
#include <memory>
#include <new>
#include <sys/prctl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace weft::rt {

constinit never_destroyed<scheduler> the_scheduler;

// --- idle Ps. All under sched.mutex.

void idle_p_put(P* p) noexcept {
  WEFT_CHECK(p->status.load(relaxed) == p_status::idle, "P {} goes idle in status {}", p->id,
             static_cast<int>(p->status.load(relaxed)));
  WEFT_CHECK(!p->has_turn.load(relaxed), "P {} goes idle with the turn for newcomers", p->id);
  WEFT_CHECK(p->runq.size() == 0, "P {} goes idle with {} goroutines in its queue", p->id, p->runq.size());
  // Only who holds a P adds timers to its heap, so it stays empty while the P idles. But threads without a P add to
  // that of P 0 at any time, and others may at once make these timers earlier (Go issue 44868): its bit stays set.
  if (p->id != 0 && p->timers.wake_when() == 0) sched.timer_mask.clear(p->id);
  sched.idle_mask.set(p->id);
  p->next_idle = sched.idle_p_list;
  sched.idle_p_list = p;
  sched.idle_ps.fetch_add(1, seq_cst);  // S1
}

P* idle_p_get() noexcept {
  P* p = sched.idle_p_list;
  if (!p) return nullptr;
  sched.idle_p_list = p->next_idle;
  p->next_idle = nullptr;
  sched.timer_mask.set(p->id);
  sched.idle_mask.clear(p->id);
  sched.idle_ps.fetch_sub(1, seq_cst);
  // The first P out of idle ends sysmon's deep sleep.
  wake_sysmon();
  return p;
}

void wake_sysmon() noexcept {
  if (!std::exchange(sched.sysmon_waits, false)) return;
  sched.coarse_now.store(nanotime(), relaxed);  // nobody kept it while sysmon slept
  sched.sysmon_note.wakeup();
}

void hurry_sysmon() noexcept {
  // relaxed: whoever is not seen here is looked after when the pause is over.
  if (sched.sysmon_pauses.load(relaxed) && sched.sysmon_pauses.exchange(false, relaxed)) sched.sysmon_pause.wakeup();
}

// --- M holds P

void acquirep(M* m, P* p) noexcept {
  WEFT_CHECK(!m->p.load(relaxed) && !p->m.load(relaxed), "M {} takes P {} which M {} holds", m->id, p->id,
             fmt::ptr(p->m.load(relaxed)));
  m->p.store(p, relaxed);
  p->m.store(m, relaxed);
  p->status.store(p_status::running, release);
}

P* releasep(M* m) noexcept {
  P* p = m->p.load(relaxed);
  WEFT_CHECK(p && p->m.load(relaxed) == m && p->status.load(relaxed) == p_status::running,
             "M {} gives up a P it does not hold", m->id);
  m->p.store(nullptr, relaxed);
  p->m.store(nullptr, relaxed);
  p->status.store(p_status::idle, release);
  return p;
}

// --- starting and stopping Ms

namespace {

void* m_thread(void* arg) noexcept {
  M* m = static_cast<M*>(arg);
  pthread_sigmask(SIG_SETMASK, &sched.signal_mask, nullptr);  // sysmon, which starts Ms, blocks all signals
  set_this_thread(m);
  m->bind_to_this_thread();
  m->tid = ::gettid();
  char name[16];
  *fmt::format_to_n(name, sizeof name - 1, "weft-m{}", m->id).out = '\0';
  pthread_setname_np(pthread_self(), name);
  adopt_thread_stack(&m->g0, &m->thread_stack);
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // else the kernel adds up to 50 µs to every deadline
  take_short_turns(0);
  m->for_signals.use();
  m_main(m);
  set_this_thread(nullptr);  // what thread_locals' destructors do, a thread of the program does
  return nullptr;
}

std::uint64_t present_run() noexcept { return sched.run_number.load(relaxed); }

// How an M begins.
struct first_task {
  P* p = nullptr;         // what it holds, or null: it sleeps until it is woken, and may be beyond max_threads
  bool spinning = false;  // it looks for work; the caller has counted it
  G* picked = nullptr;    // what it runs first
};

// Throws nothing: null if the run() is over, or there is no memory or no thread to be had; *error says why.
M* new_m(const first_task& task, std::uint64_t run, int* error) noexcept {
  const bool spare = !task.p;
  std::unique_ptr<M> m;
  std::uint32_t id;
  {
    lock_guard hold(sched.mutex);
    *error = EAGAIN;
    if (is_over(run) || (!spare && sched.live_ms >= sched.options.max_threads)) return nullptr;
    m.reset(new (std::nothrow) M);
    if (!m) {
      *error = ENOMEM;
      return nullptr;
    }
    sched.all_ms.push_back(m.get());
    id = static_cast<std::uint32_t>(sched.next_m_id++);
    ++sched.live_ms;
  }
  m->worker = true;
  m->scheduler = &m->g0;
  m->id = id;
  m->g0.kind = g_kind::scheduler;
  m->g0.state.store(g_state::running, relaxed);
  m->g0.thread = m.get();
  m->g = &m->g0;
  m->random = random_source(0x9e3779b97f4a7c15u * (id + 1));
  m->next_p = task.p;
  m->picked = task.picked;
  m->begins_idle = spare;
  m->spinning.store(task.spinning, relaxed);
  if (sched.options.hazard) m->requests.fetch_or(request::hazard, relaxed);

  M* raw = m.release();  // belongs to its thread, and to all_ms
  *error = raw->for_signals.reserve() ? start_thread(&raw->thread, m_thread, raw) : ENOMEM;
  sched.thread_refused.store(*error == 0 ? 0 : nanotime(), relaxed);
  if (*error == 0) return raw;
  lock_guard hold(sched.mutex);
  --sched.live_ms;
  if (sched.shutting_down.load(relaxed)) {
    raw->thread = {};
    raw->finished.store(true, release);  // stop_runtime frees it
    sched.exit_note.wakeup();
  } else {
    sched.all_ms.erase(raw);
    delete raw;
  }
  return nullptr;
}

// As many idle Ms as there are Ps are kept. More of them end when they were not wanted for this long.
constexpr nanos idle_m_patience = 5 * second;

// The list of idle Ms: the last to come is the first to be used. All under sched.mutex.

void idle_m_put(M* m) noexcept {
  m->next_idle = sched.idle_m_list;
  if (m->next_idle) m->next_idle->prev_idle = m;
  sched.idle_m_list = m;
  m->in_idle_list = true;
  ++sched.idle_ms;
}

void idle_m_remove(M* m) noexcept {
  if (m->next_idle) m->next_idle->prev_idle = m->prev_idle;
  (m->prev_idle ? m->prev_idle->next_idle : sched.idle_m_list) = m->next_idle;
  m->next_idle = m->prev_idle = nullptr;
  m->in_idle_list = false;
  --sched.idle_ms;
}

// False: m, which is in the idle list, was not wanted for long, and is out of it.
bool sleep_while_patient(M* m) noexcept {
  if (m->parked.sleep_until(nanotime() + idle_m_patience)) return true;
  {
    lock_guard hold(sched.mutex);
    // The last one that is not tied stays, for those that are (locked.cpp).
    if (m->in_idle_list && sched.untied_ms > 1 && !sched.shutting_down.load(relaxed)) {
      idle_m_remove(m);
      --sched.untied_ms;
      return false;
    }
  }
  m->parked.sleep();  // if somebody took it from the list, the wake-up is on its way
  return true;
}

// Under sched.mutex. False: no M idles.
bool wake_some_idle_m(P* p, bool spinning) noexcept {
  M* m = sched.idle_m_list;
  if (m) wake_idle_m(m, p, spinning);
  return m != nullptr;
}

void rouse_dozer() noexcept {
  lock_guard hold(sched.mutex);  // the M may be gone once the runtime ends
  if (sched.shutting_down.load(relaxed)) return;
  if (M* m = sched.dozer.exchange(nullptr, seq_cst)) m->parked.wakeup();
}

// The system refused a thread: it is not asked again for each goroutine that would like to have company, as that takes
// far longer than most of them run.
constexpr nanos ask_again_after = millisecond;

bool thread_was_refused() noexcept {
  nanos refused = sched.thread_refused.load(relaxed);
  return refused != 0 && nanotime() - refused < ask_again_after;
}

// When no thread can be had, because the system refuses it or by options::max_threads, the P idles although it is
// wanted ("threads lack"). What it would have run is for the Ms that there are, in the global queue; its timers stay
// where they are. The Ms that run goroutines look at both as they come by (find_runnable); if they do not come by,
// sysmon tries again. Those that are about to sleep must not: one takes an idle P and looks once more, as if it had
// been woken for that.
//
//     startm, in vain                               an M without a P
//     L1  queue globally, P idle,                   in stopm: threads_lack? takes a P. All under sched.mutex, where
//         threads_lack = true; under sched.mutex,   startm looks for an idle M
//         if no M idles
//     L2  somebody dozes: wake it                   D1  dozer = itself; then looks at every queue (find.cpp)
//         last_poll == 0: break the sleep off       P1  last_poll = 0; then threads_lack? does not sleep (find.cpp)
//
//     All of them seq_cst: if L2 does not read D1 or P1, that comes later, and sees L1.
//     An M that comes back without its P, from a call or because it computed, takes its turn like all others then,
//     instead of an idle P: it may be the only one, and never come by the scheduler.
//
//     A thread of the program's may come so late that the P it took belongs to another run() by then: it forgets it.
//     But as long as it counted as spinning, those of the new run() left their wake-ups to it.
void start_new_m(P* p, bool spinning, std::uint64_t run) noexcept {
  int error;
  if (!thread_was_refused() && new_m({.p = p, .spinning = spinning}, run, &error)) return;
  bool late;
  {
    lock_guard hold(sched.mutex);
    late = is_over(run);
    if (!late && wake_some_idle_m(p, spinning)) return;  // it went to sleep meanwhile
    if (spinning) sched.spinning.fetch_sub(1, seq_cst);
    if (!late) {
      bool inherit;
      while (G* g = p->runq.get(&inherit)) global_put(g);
      idle_p_put(p);
      sched.threads_lack.store(true, seq_cst);  // L1
    }
  }
  if (late) return wakep();
  if (sched.dozer.load(seq_cst)) return rouse_dozer();                 // L2
  if (sched.last_poll.load(seq_cst) != 0) return warn_of_no_thread();  // L2
  // Not for what is some P's very next: two that talk would break it off for each word.
  if (look_beyond_next() != queued::nothing) netpoll_break();
}

}  // namespace

void startm(P* p, bool spinning) noexcept {
  std::uint64_t run;
  {
    lock_guard hold(sched.mutex);
    if (!p && !sched.shutting_down.load(relaxed)) p = idle_p_get();
    if (!p || sched.shutting_down.load(relaxed)) {
      if (spinning) sched.spinning.fetch_sub(1, seq_cst);
      return;  // a P in the caller's hands stays there: the runtime ends
    }
    sched.thread_wakeups.fetch_add(1, relaxed);
    if (wake_some_idle_m(p, spinning)) return;
    run = present_run();
  }
  start_new_m(p, spinning, run);
}

void wake_idle_m(M* m, P* p, bool spinning) noexcept {
  idle_m_remove(m);
  m->spinning.store(spinning, relaxed);
  m->next_p = p;
  m->parked.wakeup();  // under the lock: the M may be gone once the runtime ends
}

bool pass_on(M* m, G* g) noexcept {
  {
    lock_guard hold(sched.mutex);
    if (sched.shutting_down.load(relaxed)) return false;
    M* other = sched.idle_m_list;
    while (other && other->pins != 0) other = other->next_idle;  // g may be about to block (leave_thread)
    if (other) {
      other->picked = g;
      wake_idle_m(other, releasep(m), false);
      return true;
    }
  }
  P* p = releasep(m);
  int error;
  if (new_m({.p = p, .picked = g}, present_run(), &error)) return true;
  acquirep(m, p);
  return false;
}

int start_spare_m() noexcept {
  int error;
  M* m = new_m({}, present_run(), &error);
  lock_guard hold(sched.mutex);
  sched.spare_starts = false;
  if (!m) return error;
  if (sched.shutting_down.load(relaxed)) return 0;  // it was woken for that, and may be gone
  idle_m_put(m);
  ++sched.untied_ms;
  return 0;
}

void start_first_m() {
  P* p;
  {
    lock_guard hold(sched.mutex);
    p = idle_p_get();
  }
  // None: threads of the program have started goroutines already, and Ms for them. Or they change the number of Ps.
  if (!p) return;
  // Spinning: it looks for main, and nobody starts another M for that.
  sched.spinning.fetch_add(1, seq_cst);
  int error;
  if (new_m({.p = p, .spinning = true}, present_run(), &error)) return;
  sched.spinning.fetch_sub(1, seq_cst);
  {
    lock_guard hold(sched.mutex);
    idle_p_put(p);
  }
  throw std::system_error(error, std::generic_category(), "weft::run(): cannot start a thread");
}

P* idle_p_to_go_on(const M* m) noexcept {
  if (sched.world_stopping.load(relaxed) || sched.shutting_down.load(relaxed)) return nullptr;
  // One that is tied to its goroutine runs no other.
  bool gives_way = sched.threads_lack.load(relaxed) && !m->locked_g.load(relaxed);
  return gives_way ? nullptr : idle_p_get();
}

bool take_p_for_want_of_thread(M* m) noexcept {
  if (WEFT_LIKELY(!sched.threads_lack.load(relaxed)) || sched.world_stopping.load(relaxed)) return false;
  sched.threads_lack.store(false, relaxed);
  P* p = idle_p_get();
  if (!p) return false;
  acquirep(m, p);
  start_spinning(m);
  return true;
}

void stopm(M* m) noexcept {
  bool one_too_many;
  {
    lock_guard hold(sched.mutex);
    if (sched.shutting_down.load(relaxed)) return;
    if (WEFT_UNLIKELY(!m->pinned_ready.empty()) && take_p_for_pinned(m)) return;
    if (take_p_for_want_of_thread(m)) return;
    idle_m_put(m);
    one_too_many = sched.idle_ms > sched.procs.load(relaxed) && m->pins == 0;
    check_dead();
  }
  if (one_too_many) {
    m->leaves = !sleep_while_patient(m);
  } else {
    m->parked.sleep();
  }
  m->parked.clear();
  if (P* p = std::exchange(m->next_p, nullptr)) acquirep(m, p);
}

void wakep(help h) noexcept {
  if (h != help::to_poll && !sched.help_wanted.load(relaxed)) sched.help_wanted.store(true, relaxed);
  std::uint32_t none = 0;
  if (sched.spinning.load(seq_cst) != 0 || !sched.spinning.compare_exchange_strong(none, 1, seq_cst, relaxed)) {
    if (h == help::now && sched.dozer.load(seq_cst)) rouse_dozer();
    return;
  }
  P* p;
  std::uint64_t run;
  {
    lock_guard hold(sched.mutex);
    p = sched.world_stopping.load(relaxed) || sched.shutting_down.load(relaxed) ? nullptr : idle_p_get();
    if (!p) {
      // Every P is held, and each M looks again after it gives one up. Under the lock: an M that does so afterwards
      // sees the work of everybody whom our "spinning" kept from waking somebody.
      sched.spinning.fetch_sub(1, seq_cst);
      return;
    }
    sched.thread_wakeups.fetch_add(1, relaxed);
    if (wake_some_idle_m(p, true)) return;
    run = present_run();
  }
  start_new_m(p, true, run);
}

bool timer_wants_poller() noexcept {
  // sysmon asks, too, every 20 ms at least: a later one will be within this by then.
  constexpr nanos sysmon_sees_it = 40 * millisecond;
  if (sched.last_poll.load(seq_cst) == 0) return false;
  nanos timer = earliest_timer();
  return timer != 0 && timer - nanotime() < sysmon_sees_it;
}

bool poller_is_wanted() noexcept {
  return (sched.last_poll.load(seq_cst) != 0 && anybody_waits_for_io()) || timer_wants_poller();
}

void start_spinning(M* m) noexcept {
  m->spinning.store(true, relaxed);
  sched.spinning.fetch_add(1, seq_cst);
}

void resetspinning(M* m) noexcept {
  m->spinning.store(false, relaxed);
  sched.spinning.fetch_sub(1, seq_cst);  // S2
  if (sched.idle_ps.load(seq_cst) == 0) return;
  if (queued what = look_at_queues(); what != queued::nothing) {  // S3
    wakep(what == queued::work ? help::now : help::soon);
  } else if (poller_is_wanted()) {
    wakep(help::to_poll);  // while this M runs a goroutine
  }
}

void handoffp(P* p) noexcept {
  WEFT_CHECK(p->status.load(relaxed) == p_status::idle, "P {} handed off in status {}", p->id,
             static_cast<int>(p->status.load(relaxed)));
  // Its own work or shared work: somebody has to run it.
  if (!p->runq.empty() || sched.global_size.load(seq_cst) != 0) return startm(p, false);
  // Nobody spins and nobody idles: work that appears now would find no helper.
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
    // Whoever gives a P up sleeps in the poller if nobody does. Here the P is given up for an M that does not.
    bool last = sched.idle_ps.load(relaxed) == sched.procs.load(relaxed) - 1;
    start = sched.global_size.load(relaxed) != 0 || poller_is_wanted() || (last && sched.last_poll.load(relaxed) != 0);
    if (!start) {
      when = p->timers.wake_when();
      idle_p_put(p);
    }
  }
  if (start) return startm(p, false);
  if (when != 0) wake_net_poller(when);
  if (look_at_queues() != queued::nothing) wakep();  // S3: made ready by somebody who saw no P idle
}

// --- an M's life

namespace {

// Runs g, which the caller took from a queue, until the M is back on its own stack.
void execute(M* m, G* g, bool inherit) noexcept {
  P* p = m->p.load(relaxed);
  count_dispatch(p, inherit);
  if (std::uint32_t r = m->requests.load(relaxed); WEFT_UNLIKELY(r != 0)) {
    // A request to yield was meant for the last one.
    if (r & request::yield) m->requests.fetch_and(~request::yield, relaxed);
    if (r & request::hazard) forget_held_locks();
  }
  g->set_state(g_state::runnable, g_state::running);
  if (WEFT_UNLIKELY(g->marks() & mark::timed)) count_latency(p, g);
  if (!g->context) begin(p, g);
  switch_to(m, g, nullptr, nullptr);
}

// What this M shall run next, or null when the runtime ends.
G* schedule(M* m, bool* inherit) noexcept {
  for (;;) {
    // Whoever ran here last has parked, yielded or ended.
    if (P* p = m->p.load(relaxed)) return_turn(p);
    if (m->locked_g.load(relaxed)) {
      stop_locked_m(m);
      if (sched.shutting_down.load(acquire)) return nullptr;
      *inherit = false;
      return m->locked_g.load(relaxed);
    }
    G* g = std::exchange(m->picked, nullptr);
    *inherit = false;
    if (!g) g = find_runnable(m, inherit);
    if (!g) return nullptr;
    if (WEFT_UNLIKELY(put_newcomer_aside(m->p.load(relaxed), g))) continue;
    if (m->spinning.load(relaxed)) {
      resetspinning(m);
    } else if (sched.idle_ps.load(seq_cst) != 0 && timer_wants_poller()) {
      wakep(help::to_poll);
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
    m->parked.sleep();  // start_spare_m has counted it and put it into the list
    m->parked.clear();
  } else {
    lock_guard hold(sched.mutex);
    ++sched.untied_ms;
  }
  if (P* p = std::exchange(m->next_p, nullptr)) acquirep(m, p);
  bool inherit;
  while (G* g = schedule(m, &inherit)) execute(m, g, inherit);
  if (m->spinning.load(relaxed)) sched.spinning.fetch_sub(1, seq_cst);

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
    m->next_idle = sched.gone_ms.load(relaxed);
    sched.gone_ms.store(m, relaxed);
    return;
  }
  m->finished.store(true, release);
  sched.exit_note.wakeup();
}

void join_gone_ms() noexcept {
  if (!sched.gone_ms.load(relaxed)) return;
  M* gone;
  {
    lock_guard hold(sched.mutex);
    gone = sched.gone_ms.exchange(nullptr, relaxed);
  }
  while (gone) {
    M* m = std::exchange(gone, gone->next_idle);
    pthread_join(m->thread, nullptr);
    delete m;
  }
}

}  // namespace weft::rt
