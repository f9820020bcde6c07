// The monitor, after Go's sysmon and retake.
//
// Its pauses between two looks, to which the kernel adds up to 50 µs (without that, by PR_SET_TIMERSLACK, nothing that
// was measured became better):
//
//   it took a P a moment ago                     20 µs; after 50 looks in vain each is twice as long, up to 10 ms
//   no P idles, and timers or descriptors wait   the same, up to 1 ms
//   descriptors are waited for, and nobody       the same
//   sleeps in the poller
//   a P seems to be stuck besides                not beyond its time slice, nor the next timer
//   a thread is watched (call_watch.hpp)         until it is known whether it blocks
//   goroutines compute without a P               at least 500 µs, unless a P is stuck, too: its share of the
//                                                processors is small then
//   no P idles, one is left behind in a call,    none, and then 50 µs: once a millisecond (hurry_sysmon)
//   and somebody waits
//   every P idles                                10 ms: one may be taken and get stuck
//   the forced tick is due before, or the        until then
//   memory of free stacks (cooling.hpp), or a
//   line of a trace, or a promise (burst.cpp)
//
// Once every P idles, nothing ran since the last look and nobody has promised anything, or while the world is stopped,
// it sleeps on a note: until half of the forced tick's period has passed, the next line of a trace or of the hogs, the
// next look at a suspected deadlock or at free stacks, is due or, if nobody sleeps in the poller, a timer is. Whoever
// takes a P out of idle wakes it (idle_p_get). A program that only idles between its timers is looked after every 10
// ms, as waking a thread for each of its wake-ups would cost more than they do. Policy and time live here; what is done
// to Ps and Ms are verbs of sched.
//
// Each round: 1. take over a promise that is due, and poll, if nobody did for 1 ms; 2. a timer is overdue, whose P may
// be stuck, or goroutines wait in the global queue or to begin, or nobody polled, or sleeps for a timer that is due
// soon: start an M if a P idles; 3. retake; 4. reports of WEFT_DEBUG=hogs (hogs.hpp); 5. the gate for newcomers
// (gate.hpp); 6. the forced tick; 7. the memory of free stacks; 8. the number of processors, once a second; 9. Ms whose
// threads have ended are joined; 10. WEFT_DEBUG=schedtrace.

#include "sysmon/sysmon.hpp"

#include "runtime/cpus.hpp"
#include "runtime/time_slice.hpp"
#include "sched/burst.hpp"
#include "sched/dump.hpp"
#include "sched/find.hpp"
#include "sched/io.hpp"
#include "sched/lifecycle.hpp"
#include "sched/locked.hpp"
#include "sched/newcomers.hpp"
#include "sched/park.hpp"
#include "sched/preempt.hpp"
#include "sched/proc.hpp"
#include "sched/syscall.hpp"
#include "sched/threads.hpp"
#include "sched/world.hpp"
#include "sysmon/call_watch.hpp"
#include "sysmon/cooling.hpp"
#include "sysmon/gate.hpp"
#include "sysmon/hogs.hpp"
#include "sysmon/thread_state.hpp"

#include <algorithm>
#include <csignal>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace weft::rt {

namespace {

constexpr nanos shortest_pause = 20 * microsecond;
constexpr nanos pause_beside_hogs = 500 * microsecond;  // sysmon's share of the processors is small then
constexpr nanos longest_pause = 10 * millisecond;
// Timers that are due within sysmon_is_in_time may be left to sysmon, if it looks often enough.
static_assert(2 * longest_pause <= sysmon_is_in_time);
constexpr int rounds_before_backoff = 50;
constexpr nanos time_slice = 10 * millisecond;
constexpr nanos follow_cpus_every = second;
constexpr nanos overdue_after = 50 * microsecond;  // whoever sleeps for a timer is on its way before
constexpr nanos overdue_slice = millisecond;       // when something is overdue and no P is free, or nobody polls
// A suspected deadlock is looked at again, less and less often.
constexpr nanos first_suspicion = millisecond, longest_suspicion = 60 * second;

struct monitor {
  pthread_t thread{};
  atomic<bool> stop{false};
  atomic<bool> quit{false};    // SIGQUIT came
  atomic<bool> serves{false};  // it runs, and will see that
};
constinit monitor the_monitor;

bool all_idle() noexcept { return sched.idle_ps.load(seq_cst) == sched.procs.load(relaxed); }

// Goroutines are queued, or descriptors waited for without anybody who polls, while every P idles: an M could not be
// started for them.
bool nobody_helps() noexcept {
  return sched.global_size.load(relaxed) != 0 || newcomers_may_begin() ||
         (sched.last_poll.load(relaxed) != 0 && anybody_waits_for_io());
}

// Goroutines dispatched so far, by all Ps that there are.
std::uint64_t all_dispatches() noexcept {
  std::uint64_t sum = 0;
  std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) sum += dispatches(sched.all_ps[i].load(acquire));
  return sum;
}

// Sleeps until `deadline` or until somebody wakes sysmon. If the deadlock check wants to be asked again: for
// *suspicion, which doubles.
void deep_sleep(nanos deadline, nanos* suspicion) noexcept {
  {
    lock_guard hold(sched.mutex);
    // Once more: what was made ready since the last look, and found no thread, waits for sysmon.
    if (!sched.world_stopping.load(relaxed) &&
        (!all_idle() || nobody_helps() || newcomers_aside() != 0 || promise_due() != forever))
      return;
    if (nanos timer = earliest_timer(); timer != 0 && sched.last_poll.load(relaxed) != 0) {
      deadline = std::min(deadline, timer);
    }
    if (the_monitor.stop.load(relaxed)) return;
    if (nanos again = nanotime() + *suspicion; sched.suspect_dead && again < deadline) {
      deadline = again;
      *suspicion = std::min(*suspicion * 2, longest_suspicion);
    }
    sched.sysmon_note.clear();
    sched.sysmon_waits = true;
  }
  // After the note was cleared, both seq_cst: whoever sets it from here on wakes us ("a last quit").
  if (the_monitor.quit.load(seq_cst)) return;
  sched.sysmon_note.sleep_until(deadline);
  lock_guard hold(sched.mutex);
  sched.sysmon_waits = false;
}

void check_dead_again() noexcept {
  lock_guard hold(sched.mutex);
  if (sched.suspect_dead) check_dead();
}

// The pauses between looks. Somebody who hurries sysmon (hurry_sysmon) wants two looks, soon: one that sees its call,
// and one that sees it still there. Then it rests for a while, as calls may come one after the other; whoever wants it
// meanwhile has its looks afterwards.
class look_pauses {
 public:
  void pause(nanos d) noexcept {
    const nanos now = nanotime(), end = now + (std::exchange(hurried_, false) ? std::min(d, second_look) : d);
    if (now < rested_) {
      const bool woken = sleep(sysmon_state::rests, std::min(end, rested_));
      if (woken || end <= rested_) return;
    }
    if (!wanted_) sleep(sysmon_state::may_be_hurried, end);
    if (!std::exchange(wanted_, false)) return;
    hurried_ = true;
    rested_ = nanotime() + hurried_at_most_every;
  }

 private:
  // True: somebody woke it. Whoever did so to stop it, or for SIGQUIT, has said so before, which is seen after this.
  bool sleep(sysmon_state as, nanos until) noexcept {
    sched.sysmon.store(as, relaxed);
    const bool woken = sched.sysmon_pause.sleep_until(until);
    const sysmon_state s = sched.sysmon.exchange(sysmon_state::looks, seq_cst);
    wanted_ = wanted_ || s != as;  // by whoever hurries it
    return woken;
  }

  static constexpr nanos second_look = 50 * microsecond, hurried_at_most_every = millisecond;
  bool hurried_ = false, wanted_ = false;
  nanos rested_ = 0;
};

// Something waits that a free P would do.
bool work_is_overdue(nanos now) noexcept {
  nanos timer = earliest_timer();
  return (timer != 0 && saturating_add(timer, overdue_after) <= now) || sched.global_size.load(relaxed) != 0;
}

// Gives the work of a P that was taken to another M.
void give_to_another(P* p) noexcept {
  sched.retakes.fetch_add(1, relaxed);
  handoffp(p);
}

struct retaken {
  int taken = 0;
  bool detached = false;      // one of them from a goroutine that runs on
  defendant newcomer;         // one of them had just begun
  bool has_turn = false;      // one of them, whose goroutine is in a call, had it
  bool stuck = false;         // some P runs what it ran at the last look
  nanos next_look = forever;  // a P that is wanted has run for too long then, or a thread that is watched is known
};

// Others wait for a turn. Without anything else to run, the P may as well stay where it is.
bool wanted(P* p) noexcept {
  return !p->runq.empty() || sched.global_size.load(relaxed) != 0 || p->timers.wake_when() != 0 ||
         anybody_waits_for_io() || newcomers_want(p);
}

// p's M is in a call. slice_is_over: it is in this one, or makes one after the other, for longer than a time slice, and
// p is wanted.
bool takes_from_call(P* p, nanos now, bool slice_is_over) noexcept {
  std::uint32_t tick = p->syscall_tick.load(relaxed);
  if (std::exchange(p->seen.syscall_tick, tick) != tick) {
    p->seen.syscall_when = now;
    if (!slice_is_over) return false;
  }
  // It has been there for a whole round. If nobody wants the P, and somebody else is free, it may stay for 10 ms.
  bool others_free = sched.spinning.load(relaxed) + sched.idle_ps.load(relaxed) > 0;
  if (slice_is_over && sched.out_of_threads.load(relaxed)) others_free = false;  // its M is the one to be had
  if (p->runq.empty() && others_free && now - p->seen.syscall_when < time_slice) return false;
  return retake_syscall(p);
}

// p's goroutine ran for too long, or blocks. It is asked to yield when it next comes by. It loses the P at once if
// somebody wants that, if something is overdue, or if WEFT_DEBUG=hogs is to report it. True: the caller owns p.
bool take_from_running(P* p, std::uint64_t tick, nanos now, bool overdue, hog_watch& hogs, retaken& r) noexcept {
  M* m = p->m.load(relaxed);
  if (!m) return false;
  lock_guard hold(sched.mutex);
  if (p->m.load(relaxed) != m || p->sched_tick.load(relaxed) != tick) return false;
  if (!(m->requests.load(relaxed) & request::yield)) {
    m->requests.fetch_or(request::yield, relaxed);
    sched.preemptions.fetch_add(1, relaxed);
  }
  if (!overdue && !wanted(p) && !hogs.is_one(now - p->seen.sched_when)) return false;
  if (sched.world_stopping.load(relaxed) || sched.shutting_down.load(relaxed)) return false;
  if (!detach_running(p)) return false;  // or its goroutine keeps it: weft::no_preemption
  sched.preemptions_taken.fetch_add(1, relaxed);
  sched.detachments.fetch_add(1, relaxed);
  note_slice_used_up(p);
  note_detached(m, look_at_thread(m->tid.load(relaxed)) != thread_does::sleep);
  if (take_turn_away(p)) {
    r.newcomer = {m, m->regained, p->turn_kind, true};
  } else if (!r.newcomer.m && p->began.at == dispatches(p)) {
    r.newcomer = {m, m->regained, p->began.kind, false};
  }
  hogs.lost_its_p(m, p->seen.sched_when);
  r.detached = true;
  return true;
}

// Ps of goroutines that ran or blocked too long.
retaken retake(nanos now, bool overdue, hog_watch& hogs, call_watch& calls) noexcept {
  retaken r;
  std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    P* p = sched.all_ps[i].load(acquire);
    p_status s = p->status.load(acquire);
    if (s != p_status::running && s != p_status::syscall) continue;
    std::uint64_t tick = p->sched_tick.load(relaxed);
    const bool went_on = std::exchange(p->seen.sched_tick, tick) != tick;
    if (went_on) {
      p->seen.sched_when = now;
      // It may not know of what is overdue (a timer that a foreign thread armed): let it look.
      if (overdue) p->next_look.store(1, relaxed);
    }
    nanos until = p->seen.sched_when + (overdue ? overdue_slice : time_slice);
    if (s == p_status::running) {
      if (went_on) {
        calls.gone_on(p, tick, now);
        continue;
      }
      r.stuck = true;
      if (!calls.blocks(p, tick, now) && now < until) {
        r.next_look = std::min(r.next_look, until);
        continue;
      }
      if (!take_from_running(p, tick, now, overdue, hogs, r)) continue;
    } else {
      const bool slice_is_over = now >= until && (overdue || wanted(p));
      if (!takes_from_call(p, now, slice_is_over)) continue;
      if (slice_is_over) note_slice_used_up(p);
      r.has_turn |= end_turn(p);
    }
    p->seen.sched_when = now;
    give_to_another(p);
    ++r.taken;
  }
  calls.end_of_round(now);
  r.next_look = std::min(r.next_look, calls.next_look());
  return r;
}

// The number of Ps is that of the processors, as long as nobody has set it.
void follow_cpus_if_due(nanos now, nanos* next) noexcept {
  if (!sched.follow_cpus.load(relaxed) || now < *next) return;
  *next = now + follow_cpus_every;
  const std::uint32_t before = sched.procs.load(relaxed), n = std::min(count_cpus(before), max_procs);
  if (n == before) return;
  try {
    set_procs(n, who_sets::sysmon);
  } catch (const std::bad_alloc&) {
    // As it was; the next look may find memory.
  }
}

// True: nobody had looked for so long that a P that idles shall have an M sleep there.
bool poll_if_nobody_did(nanos now) noexcept {
  nanos last = sched.last_poll.load(relaxed);
  if (last == 0 || now - last < overdue_slice || !anybody_waits_for_io()) return false;
  if (!sched.last_poll.compare_exchange_strong(last, now, acq_rel, relaxed)) return false;
  g_list woken;
  poll_network(0, woken);
  ready_all(woken);
  return true;
}

nanos next_pause(nanos interval, const retaken& last) noexcept {
  if (sched.hogs.load(relaxed) != 0) interval = std::max(interval, pause_beside_hogs);
  if (all_idle()) return longest_pause;  // a P may be taken and get stuck
  const bool io = anybody_waits_for_io();
  if (sched.idle_ps.load(relaxed) != 0) {
    const bool nobody_polls = io && sched.last_poll.load(relaxed) != 0;
    return nobody_polls ? std::min(interval, overdue_slice) : interval;
  }
  nanos timer = earliest_timer();
  if (timer != 0 || io) interval = std::min(interval, overdue_slice);
  nanos now = nanotime();
  nanos until = std::min(now + interval, last.next_look);
  if (last.stuck && timer > now) until = std::min(until, saturating_add(timer, overdue_after));
  return std::max(until - now, shortest_pause);
}

// Not in the signal's handler: the dump may allocate, and a stack is read while nobody resumes it.
[[noreturn]] void quit() noexcept {
  constexpr nanos patience = second;
  nanos deadline = nanotime() + patience;
  constexpr timespec a_moment{0, static_cast<long>(millisecond)};
  flush_stdout();
  while (!sched.world.try_acquire_lock() && nanotime() < deadline) nanosleep(&a_moment, nullptr);
  stop_the_world(deadline);
  dump_goroutines(STDERR_FILENO, dump_of::all_goroutines, names::demangled);
  _exit(2);
}

void run_monitor() noexcept {
  use_short_slices(0);
  const nanos trace_period = sched.options.trace_period;
  const nanos start = nanotime();
  nanos next_trace = trace_period ? start + trace_period : forever;
  int idle_rounds = 0;
  nanos interval = shortest_pause;
  nanos suspicion = first_suspicion;
  nanos next_cpus = start + follow_cpus_every;
  const std::uint64_t before_main = all_dispatches();
  std::uint64_t dispatched = before_main;
  gate newcomers;
  retaken last;
  look_pauses between;
  hog_watch hogs(sched.options.hog_threshold);
  call_watch calls;
  cooling stacks(start);
  while (!the_monitor.stop.load(seq_cst)) {
    if (idle_rounds == 0) {
      interval = shortest_pause;
    } else if (idle_rounds > rounds_before_backoff) {
      interval = std::min(interval * 2, longest_pause);
    }
    // All Ps idle until main begins.
    const nanos pause = dispatched == before_main ? interval : next_pause(interval, last);
    const nanos until_next =
        std::min({next_forced_tick(), stacks.next_batch(), next_trace, promise_due()}) - nanotime();
    between.pause(std::min(pause, std::max(until_next, shortest_pause)));
    if (the_monitor.quit.load(seq_cst)) quit();
    nanos now = nanotime();
    std::uint64_t before = std::exchange(dispatched, all_dispatches());
    if ((before == dispatched && all_idle() && !nobody_helps() && !newcomers.shall_open()) ||
        sched.world_stopping.load(acquire)) {
      nanos until = now + sched.options.force_tick_period / 2;
      deep_sleep(std::min({until, next_trace, hogs.next_look(), stacks.next_look()}), &suspicion);
      check_dead_again();
      now = nanotime();
      idle_rounds = 0;
    } else {
      suspicion = first_suspicion;
    }
    sched.coarse_now.store(now, relaxed);
    if (take_promise_over(now)) one_spins_less();
    const bool nobody_polls = poll_if_nobody_did(now);
    bool overdue = work_is_overdue(now);
    if (sched.idle_ps.load(relaxed) != 0) {
      if (overdue || newcomers_may_begin()) {
        startm(nullptr, false);
        start_some_locked_m();
      } else if (nobody_polls || timer_wants_poller()) {
        wakep(help::to_poll);
      }
    }
    M* const gone = take_gone_ms();  // so that the gate has seen of each of them that it came back
    last = retake(now, overdue, hogs, calls);
    hogs.look(now);
    newcomers.look(now, last.detached, last.newcomer, last.has_turn);
    idle_rounds = last.taken > 0 ? 0 : idle_rounds + 1;
    force_tick_if_due(now);
    stacks.look(now);
    follow_cpus_if_due(now, &next_cpus);
    join_ms(gone, 0);
    if (now >= next_trace) {
      trace_scheduler(now - start);
      next_trace = std::max(next_trace + trace_period, now);
    }
  }
}

void* monitor_thread(void*) noexcept {
  run_monitor();
  // Either the handler sees this, or its request is seen here.
  the_monitor.serves.store(false, seq_cst);
  if (the_monitor.quit.load(seq_cst)) quit();
  return nullptr;
}

}  // namespace

void start_sysmon() {
  the_monitor.stop.store(false, relaxed);
  the_monitor.serves.store(true, seq_cst);
  // It runs no user code: signals are for other threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = start_thread(&the_monitor.thread, monitor_thread, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error) the_monitor.serves.store(false, seq_cst);
  if (error) throw std::system_error(error, std::generic_category(), "weft::run(): cannot start a thread");
  pthread_setname_np(the_monitor.thread, "weft-sysmon");
}

bool request_quit() noexcept {
  the_monitor.quit.store(true, seq_cst);
  if (!the_monitor.serves.load(seq_cst)) return false;
  sched.sysmon_note.wakeup();
  sched.sysmon_pause.wakeup();
  return true;
}

void stop_sysmon() noexcept {
  {
    lock_guard hold(sched.mutex);
    the_monitor.stop.store(true, seq_cst);
    sched.sysmon_note.wakeup();
  }
  sched.sysmon_pause.wakeup();
  pthread_join(the_monitor.thread, nullptr);
}

}  // namespace weft::rt
