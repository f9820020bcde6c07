// The monitor, after Go's sysmon and retake. Policy and time live here. The functions that act on Ps and Ms are
// sched's.
//
// sysmon looks around in rounds, and pauses between them. The kernel adds up to 50 µs to each pause. (PR_SET_TIMERSLACK
// would prevent that, but made nothing better that was measured.)
//
//   the state of the Ps                          the pause
//   sysmon took a P a moment ago from one that   20 µs; after 50 rounds in vain it doubles each round, up to 10 ms
//   blocks, or beside others that compute
//   without a P
//   no P idles, and timers or descriptors are    the same, up to 1 ms
//   waited for, or something was overdue
//   a goroutine that waits for the only P is in   the same, up to 1 ms
//   a hurry (shorten_slice)
//   descriptors are waited for, and no M sleeps  the same, up to 1 ms; a pause that began before ends after 1 ms, too,
//   in the poller                                if that was of use in the last 10 s (have_sysmon_poll)
//   a P was taken from one that computes, or     at most 100 µs: the next look sees that another time slice has begun
//   makes one short call after the other
//   no P idles, and one seems to be stuck        ends with the P's time slice, or with the next timer, at the latest
//   the same, and a goroutine was asked to       ends when its time to answer is over (100 µs)
//   yield just now
//   the same, and a thread is watched            ends when it is known whether the thread blocks
//   (call_watch.hpp)
//   goroutines compute without a P               at least 500 µs, unless a P is stuck, too: sysmon's share of the
//                                                processors is small then
//   no P idles, one was left behind in a system  none, then 50 µs; this at most once a millisecond (hurry_sysmon)
//   call, and something waits for one
//   every P idles, and none was taken from a     10 ms: a P may be taken and get stuck
//   goroutine that runs a moment ago
//   the forced tick is due before that, or free  until then
//   stacks (cooling.hpp), or the next line of a
//   trace, or a promise (burst.cpp)
//
// sysmon sleeps deeply, on a note, while the world is stopped, and when every P idles, nothing has run since the last
// round and nobody has promised anything. It sleeps until half of the forced tick's period has passed, or until the
// next line of a trace or of the hogs, or the next look at a suspected deadlock or at free stacks, is due; or, if no M
// sleeps in the poller, until the next timer is. The thread that takes a P from the idle list wakes it (idle_p_get).
// While a program only idles between its timers, sysmon does a round every 10 ms instead: waking it for each wake-up of
// the program would cost more than those rounds do.
//
// Each round:
//    1. take over a promise that is due; start an M for a thread that may not (m_wanted); poll, if no M has polled for
//       1 ms
//    2. start an M if a P idles, and a timer is overdue (its P may be stuck), or goroutines wait in the global queue
//       and no M dozes, or some wait to begin, or nobody had polled, or no M sleeps for a timer that is due soon
//    3. retake
//    4. reports for WEFT_DEBUG=hogs (hogs.hpp)
//    5. the gate for newcomers (gate.hpp)
//    6. the forced tick
//    7. the memory of free stacks
//    8. the number of processors, once a second
//    9. join Ms whose threads have ended
//   10. WEFT_DEBUG=schedtrace

#include "sysmon/sysmon.hpp"

#include "runtime/cpus.hpp"
#include "runtime/time_slice.hpp"
#include "sched/burst.hpp"
#include "sched/dump.hpp"
#include "sched/io.hpp"
#include "sched/lifecycle.hpp"
#include "sched/locked.hpp"
#include "sched/newcomers.hpp"
#include "sched/park.hpp"
#include "sched/poller_sleep.hpp"
#include "sched/preempt.hpp"
#include "sched/proc.hpp"
#include "sched/syscall.hpp"
#include "sched/threads.hpp"
#include "sched/turns.hpp"
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
constexpr nanos pause_after_busy = 100 * microsecond;   // by then another goroutine's time slice has begun
constexpr nanos longest_pause = 10 * millisecond;
// Timers that are due within sysmon_is_in_time may be left to sysmon, if it looks often enough.
static_assert(2 * longest_pause <= sysmon_is_in_time);
constexpr int rounds_before_backoff = 50;
constexpr nanos time_slice = 10 * millisecond;
constexpr nanos watch_poller_for = 10 * second;  // after a time when nobody polled, though a P idled
constexpr nanos follow_cpus_every = second;
constexpr nanos overdue_after = 50 * microsecond;  // an M that sleeps for a timer is on its way by then
constexpr nanos overdue_slice = millisecond;       // in place of time_slice: overdue, or in a hurry
constexpr nanos time_to_answer = 100 * microsecond;
// A suspected deadlock is looked at again and again, at intervals that double between these.
constexpr nanos first_suspicion = millisecond, longest_suspicion = 60 * second;

struct monitor {
  pthread_t thread{};
  atomic<bool> stop{false};
  atomic<bool> quit{false};    // SIGQUIT has come
  atomic<bool> serves{false};  // sysmon runs, and will see `quit`
};
constinit monitor the_monitor;

bool all_idle() noexcept { return sched.idle_ps.load(seq_cst) == sched.procs.load(relaxed); }

// True if goroutines are queued, or if descriptors are waited for and no M sleeps in the poller. If every P idles at
// the same time, an M could not be started for them. Also true if an M was wanted for a timer, and is still to be
// started.
bool nobody_helps() noexcept {
  return sched.global_size.load(relaxed) != 0 || newcomers_may_begin() || sched.m_wanted.load(relaxed) ||
         (sched.last_poll.load(relaxed) != 0 && anybody_waits_for_io());
}

// Sleeps until `deadline`, or until another thread wakes sysmon. While a deadlock is suspected it sleeps for at most
// *suspicion, and doubles that.
void deep_sleep(nanos deadline, nanos* suspicion) noexcept {
  {
    lock_guard hold(sched.mutex);
    // Looks once more, as goroutines that were made ready since the last look, and for which no thread was to be had,
    // wait for sysmon.
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
  // `quit` is read after the note was cleared, both seq_cst: a thread that sets it from here on wakes us ("a last
  // quit").
  if (the_monitor.quit.load(seq_cst)) return;
  sched.sysmon_note.sleep_until(deadline);
  lock_guard hold(sched.mutex);
  sched.sysmon_waits = false;
}

void check_dead_again() noexcept {
  lock_guard hold(sched.mutex);
  if (sched.suspect_dead) check_dead();
}

// The pauses between rounds. A thread that hurries sysmon (hurry_sysmon) needs two rounds soon: one that sees the
// system call, and one that sees that it still goes on. After that sysmon rests for a while, as system calls may come
// one after the other. If a thread hurries sysmon while it rests, the two rounds come when it has rested.
class look_pauses {
 public:
  void pause(nanos now, nanos end) noexcept {
    if (std::exchange(hurried_, false)) end = std::min(end, now + second_look);
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
  // True: another thread woke sysmon. If it did so to stop sysmon, or for SIGQUIT, it set `stop` or `quit` before, and
  // the caller's next read sees that.
  bool sleep(sysmon_state as, nanos until) noexcept {
    sched.sysmon.store(as, relaxed);
    const bool woken = sched.sysmon_pause.sleep_until(until);
    const sysmon_state s = sched.sysmon.exchange(sysmon_state::looks, relaxed);  // as in hurry_sysmon
    wanted_ = wanted_ || s != as;                                                // hurry_sysmon has changed the state
    return woken;
  }

  static constexpr nanos second_look = 50 * microsecond, hurried_at_most_every = millisecond;
  bool hurried_ = false, wanted_ = false;
  nanos rested_ = 0;
};

// What is overdue: a timer, or a goroutine in the global queue. A free P would see to either. A dozer looks at that
// queue itself, unless one P gets as much done without it (doze.cpp).
enum class overdue_work : std::uint8_t { none, goroutine, timer };
overdue_work what_is_overdue(nanos now) noexcept {
  nanos timer = earliest_timer();
  if (timer != 0 && saturating_add(timer, overdue_after) <= now) return overdue_work::timer;
  const bool waits = sched.global_size.load(relaxed) != 0 && !sched.dozer.load(relaxed);
  return waits ? overdue_work::goroutine : overdue_work::none;
}

// Hands p, which was taken from its M, off to another one.
void give_to_another(P* p) noexcept {
  sched.retakes.fetch_add(1, relaxed);
  handoffp(p);
}

// What a round of retake did.
struct retaken {
  bool from_blocked = false;  // a P was taken from a goroutine that blocks: more may soon be
  bool from_busy = false;     // one was taken from a goroutine that computes, or makes one short call after the other
  bool detached = false;      // one was taken from a goroutine that runs on
  defendant newcomer;         // one was taken from a goroutine that had just begun
  bool has_turn = false;      // one that was taken from a system call had the turn for newcomers
  // A timer or the global queue was overdue, or others of a batch wait: so something may soon be overdue again. Or a
  // goroutine that waits for some P is in a hurry (shorten_slice).
  bool look_soon = false;
  bool stuck = false;         // some P is still in the time slice of the last round
  nanos next_look = forever;  // when such a time slice is over, or the watch of a thread is decided
};

// True if others wait for p. Otherwise the P may as well stay where it is.
bool wanted(P* p) noexcept {
  return !p->runq.empty() || sched.global_size.load(relaxed) != 0 || p->timers.wake_when() != 0 ||
         anybody_waits_for_io() || newcomers_want(p);
}

// Called while p's M is in a system call. slice_is_over: p is wanted, and the M has been in this call, or has made one
// call after the other, for longer than a time slice. True: the caller owns p.
bool takes_from_call(P* p, nanos now, bool slice_is_over) noexcept {
  std::uint32_t tick = p->syscall_tick.load(relaxed);
  if (std::exchange(p->seen.syscall_tick, tick) != tick) {
    p->seen.syscall_when = now;
    if (!slice_is_over) return false;
  }
  // The M has been in this call for a whole round, or slice_is_over. If no goroutine is queued here, and another M or P
  // is free, the P may stay for 10 ms.
  bool others_free = sched.spinning.load(relaxed) + sched.idle_ps.load(relaxed) > 0;
  if (slice_is_over && sched.out_of_threads.load(relaxed)) others_free = false;  // this M may be the only one to be had
  if (p->runq.empty() && others_free && now - p->seen.syscall_when < time_slice) return false;
  return retake_syscall(p);
}

// How a time slice ends. may_answer: the goroutine is given time_to_answer before its P is taken. One that comes by
// keeps its thread, and no other has to wake.
struct slice_end {
  nanos take_at;
  bool may_answer;
  bool overdue;
};

// Called when p's goroutine has run for too long, or blocks. Asks it to yield when it next comes by. Takes the P from
// it, if it is time for that, and if others want that P, something is overdue, or WEFT_DEBUG=hogs is to report the
// goroutine. True: the caller owns p.
bool take_from_running(P* p, std::uint64_t tick, nanos now, slice_end end, hog_watch& hogs, retaken& r) noexcept {
  M* m = p->m.load(relaxed);
  if (!m) return false;
  lock_guard hold(sched.mutex);
  if (p->m.load(relaxed) != m || p->sched_tick.load(relaxed) != tick) return false;
  const bool asked = (m->requests.load(relaxed) & request::yield) != 0;
  if (!asked) {
    m->requests.fetch_or(request::yield, relaxed);
    sched.preemptions.fetch_add(1, relaxed);
  }
  if (!end.overdue && !wanted(p) && !hogs.is_one(now - p->seen.sched_when)) return false;
  // The look after time_to_answer also sees that the next slice has begun.
  const nanos next = end.may_answer && !asked ? now + time_to_answer : end.take_at;
  if (now < next) {
    r.next_look = std::min(r.next_look, next);
    return false;
  }
  if (sched.world_stopping.load(relaxed) || sched.shutting_down.load(relaxed)) return false;
  if (!detach_running(p)) return false;  // the M is in the runtime, or its goroutine in weft::no_preemption
  sched.preemptions_taken.fetch_add(1, relaxed);
  sched.detachments.fetch_add(1, relaxed);
  note_slice_used_up(p);
  const thread_does what = look_at_thread(m->tid.load(relaxed));
  if (what == thread_does::unknown) m->use.begin(thread_time(m->tid.load(relaxed)), now);
  note_detached(m, what != thread_does::sleep);
  if (take_turn_away(p)) {
    r.newcomer = {m, m->regained, p->turn_kind, true};
  } else if (!r.newcomer.m && p->began.at == dispatches(p)) {
    r.newcomer = {m, m->regained, p->began.kind, false};
  }
  hogs.lost_its_p(m, p->seen.sched_when);
  r.detached = true;
  return true;
}

// Takes Ps from goroutines that have run or blocked for too long.
retaken retake(nanos now, overdue_work what, hog_watch& hogs, call_watch& calls) noexcept {
  const bool overdue = what != overdue_work::none;
  retaken r;
  r.look_soon = overdue;
  std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    P* p = sched.all_ps[i].load(acquire);
    p_status s = p->status.load(acquire);
    if (s != p_status::running && s != p_status::syscall) continue;
    std::uint64_t tick = p->sched_tick.load(relaxed);
    const bool went_on = std::exchange(p->seen.sched_tick, tick) != tick;
    const nanos hurry = hurry_since(p);
    // Those that came from the global queue are asked after the same time, whether others are left there or not.
    const bool batch = batch_waits(p);
    r.look_soon |= batch || hurry != forever;
    if (went_on) {
      p->seen.sched_when = now;
      // The owner may not know of what is overdue (a timer that a foreign thread has armed), so it must look.
      if (overdue) p->next_look.store(1, relaxed);
    }
    const nanos began = p->seen.sched_when;
    const nanos take_at =
        std::min(began + (overdue ? overdue_slice : time_slice), saturating_add(hurry, overdue_slice));
    const nanos ask_at = batch ? std::min(take_at, began + overdue_slice) : take_at;
    bool blocked;
    if (s == p_status::running) {
      if (went_on) {
        calls.gone_on(p, tick, now);
        continue;
      }
      r.stuck = true;
      blocked = calls.blocks(p, tick, now);
      if (!blocked && now < ask_at) {
        r.next_look = std::min(r.next_look, ask_at);
        continue;
      }
      const bool may_answer = !blocked && what != overdue_work::timer && hurry == forever;
      if (!take_from_running(p, tick, now, {blocked ? now : take_at, may_answer, overdue}, hogs, r)) continue;
    } else {
      const bool slice_is_over = now >= take_at && (overdue || wanted(p));
      if (!takes_from_call(p, now, slice_is_over)) continue;
      blocked = p->seen.syscall_when != now;  // it is still in the call of the last round
      if (slice_is_over) note_slice_used_up(p);
      r.has_turn |= end_turn(p);
    }
    p->seen.sched_when = now;
    give_to_another(p);
    (blocked ? r.from_blocked : r.from_busy) = true;
  }
  calls.end_of_round(now);
  r.next_look = std::min(r.next_look, calls.next_look());
  return r;
}

// Sets the number of Ps to that of the processors, as long as the program has not set it.
void follow_cpus_if_due(nanos now, nanos* next) noexcept {
  if (!sched.follow_cpus.load(relaxed) || now < *next) return;
  *next = now + follow_cpus_every;
  const std::uint32_t before = sched.procs.load(relaxed), n = std::min(count_cpus(before), max_procs);
  if (n == before) return;
  try {
    set_procs(n, who_sets::sysmon);
  } catch (const std::bad_alloc&) {
    // The number stays as it was. The next look may find memory.
  }
}

// Polls if no M has for polled_every. True: it did so, and if a P idles, an M should be woken to sleep in the poller.
bool poll_if_nobody_did(nanos now) noexcept {
  nanos last = sched.last_poll.load(relaxed);
  if (last == 0 || now - last < polled_every || !anybody_waits_for_io()) return false;
  if (!sched.last_poll.compare_exchange_strong(last, now, acq_rel, relaxed)) return false;
  g_list woken;
  poll_network(0, woken);
  ready_all(woken);
  return true;
}

// When the next round is due, if nothing else is before that.
nanos next_round(nanos now, nanos interval, const retaken& last) noexcept {
  if (last.from_busy) interval = std::min(interval, pause_after_busy);
  if (sched.hogs.load(relaxed) != 0) interval = std::max(interval, pause_beside_hogs);
  // A goroutine that just lost its P may call weft in a moment, take an idle P, and keep a timer waiting.
  if (all_idle() && !last.detached) return now + longest_pause;  // a P may be taken and get stuck
  const bool io = anybody_waits_for_io();
  if (sched.idle_ps.load(relaxed) != 0) {
    const bool nobody_polls = io && sched.last_poll.load(relaxed) != 0;
    return now + (nobody_polls ? std::min(interval, polled_every) : interval);
  }
  nanos timer = earliest_timer();
  if (timer != 0 || io || last.look_soon) interval = std::min(interval, overdue_slice);
  nanos at = std::min(now + interval, last.next_look);
  if (last.stuck && timer > now) at = std::min(at, saturating_add(timer, overdue_after));
  return std::max(at, now + shortest_pause);
}

// Runs here and not in the signal's handler: the dump may allocate, and it reads stacks that must not be resumed
// meanwhile.
[[noreturn]] void quit() noexcept {
  constexpr nanos patience = second;
  nanos deadline = nanotime() + patience;
  constexpr timespec a_moment{0, static_cast<long>(millisecond)};
  flush_stdout();
  print_error("SIGQUIT: quit\n\n");
  while (!sched.world.try_acquire_lock() && nanotime() < deadline) nanosleep(&a_moment, nullptr);
  (void)stop_the_world(deadline);  // the dump leaves out the stacks of what still runs
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
    // Until main begins all Ps idle, but that must not make the pause 10 ms.
    nanos now = nanotime();
    const nanos round = dispatched == before_main ? now + interval : next_round(now, interval, last);
    const nanos due = std::min({next_forced_tick(), stacks.next_batch(), next_trace, promise_due()});
    between.pause(now, std::min(round, std::max(due, now + shortest_pause)));
    if (the_monitor.quit.load(seq_cst)) quit();
    now = nanotime();
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
    if (WEFT_UNLIKELY(sched.m_wanted.load(relaxed)) && sched.m_wanted.exchange(false, seq_cst)) wakep();
    const bool nobody_polls = poll_if_nobody_did(now);
    const overdue_work overdue = what_is_overdue(now);
    if (sched.idle_ps.load(relaxed) != 0) {
      if (overdue != overdue_work::none || newcomers_may_begin()) {
        startm(nullptr, false);
        start_some_locked_m();
      } else if (nobody_polls || timer_wants_poller()) {
        wakep(help::to_poll);
      }
      if (nobody_polls) sched.watch_poller_until.store(now + watch_poller_for, relaxed);
    }
    M* const gone = take_gone_ms();  // before the gate looks, which then sees that each of them came back
    const bool beside_hogs = sched.hogs.load(relaxed) != 0;
    last = retake(now, overdue, hogs, calls);
    hogs.look(now);
    newcomers.look(now, last.detached, last.newcomer, last.has_turn);
    idle_rounds = last.from_blocked || (last.detached && beside_hogs) ? 0 : idle_rounds + 1;
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
  this_thread()->is_sysmon = true;
  run_monitor();
  this_thread()->is_sysmon = false;
  // Either the signal's handler sees this store, or its request is seen here.
  the_monitor.serves.store(false, seq_cst);
  if (the_monitor.quit.load(seq_cst)) quit();
  return nullptr;
}

}  // namespace

void start_sysmon() {
  the_monitor.stop.store(false, relaxed);
  the_monitor.serves.store(true, seq_cst);
  // sysmon runs no user code, so signals are left to other threads.
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
