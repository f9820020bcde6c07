// Ms as threads: how they start, how they sleep while they have no P, and how they end; and what happens while no
// thread is to be had.

#include "sched/threads.hpp"

#include "netpoll/netpoll.hpp"
#include "runtime/time_slice.hpp"
#include "sched/alone.hpp"
#include "sched/burst.hpp"
#include "sched/lifecycle.hpp"
#include "sched/pin.hpp"
#include "sched/proc.hpp"
#include "sched/process_exit.hpp"
#include "sched/runqueues.hpp"

#include <cerrno>
#include <fmt/format.h>
#include <memory>
#include <new>
#include <pthread.h>
#include <sys/prctl.h>
#include <system_error>
#include <time.h>
#include <unistd.h>
#include <utility>

namespace weft::rt {

// --- idle Ms

namespace {

// As many idle Ms are kept as there are Ps. Those beyond end when nobody has wanted them for this long.
constexpr nanos idle_m_patience = 5 * second;

// The list of idle Ms: last in, first out. Called under sched.mutex.

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

// m, which is in the idle list, sleeps. False: nobody has wanted m for idle_m_patience, and it has left the list.
bool sleep_while_patient(M* m) noexcept {
  if (m->parked.sleep_until(nanotime() + idle_m_patience)) return true;
  {
    lock_guard hold(sched.mutex);
    // The last M that is not tied stays, as the tied Ms need it (locked.cpp).
    if (m->in_idle_list && sched.untied_ms > 1 && !sched.shutting_down.load(relaxed)) {
      idle_m_remove(m);
      --sched.untied_ms;
      return false;
    }
  }
  m->parked.sleep();  // if another thread took m from the list, the wake-up is on its way
  return true;
}

}  // namespace

// Under the lock, as the M may be gone once the runtime ends. The system call that `rest` makes afterwards does not
// touch the M.
void wake_idle_m(M* m, P* p, bool spinning, late_wakeup& rest) noexcept {
  idle_m_remove(m);
  m->spinning.store(spinning, relaxed);
  m->next_p = p;
  m->parked.wakeup(rest);
}

bool wake_some_idle_m(P* p, bool spinning, late_wakeup& rest) noexcept {
  M* m = sched.idle_m_list;
  if (m) wake_idle_m(m, p, spinning, rest);
  return m != nullptr;
}

void rouse_dozer() noexcept {
  late_wakeup rest;
  lock_guard hold(sched.mutex);  // without it the runtime could end, and the M be gone
  if (sched.shutting_down.load(relaxed)) return;
  if (M* m = sched.dozer.exchange(nullptr, seq_cst)) m->parked.wakeup(rest);
}

void stopm(M* m) noexcept {
  if (end_burst(m)) one_spins_less();
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
  acquire_passed_p(m);
}

// --- new Ms

namespace {

void* m_thread(void* arg) noexcept {
  M* m = static_cast<M*>(arg);
  pthread_sigmask(SIG_SETMASK, &sched.signal_mask, nullptr);  // sysmon, which starts Ms, blocks all signals
  set_this_thread(m);
  m->bind_to_this_thread();
  m->tid.store(::gettid(), relaxed);
  char name[16];
  *fmt::format_to_n(name, sizeof name - 1, "{}{}", m_name_prefix, m->id).out = '\0';
  pthread_setname_np(pthread_self(), name);
  adopt_thread_stack(&m->g0, &m->thread_stack);
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // without this the kernel adds up to 50 µs to every deadline
  use_short_slices(0);
  m->for_signals.use();
  watch_for_exit();
  m_main(m);
  set_this_thread(nullptr);  // the destructors of thread_locals run as on a thread of the program's
  return nullptr;
}

// What a new M begins with.
struct first_task {
  P* p = nullptr;         // the P it holds. Null: it is a spare, sleeps until it is woken, and may exceed max_threads
  bool spinning = false;  // it looks for work; the caller has counted it
  G* picked = nullptr;    // the goroutine that it runs first
};

void prepare(M* m, const first_task& task) noexcept {
  m->worker = true;
  m->scheduler = &m->g0;
  m->id = static_cast<std::uint32_t>(sched.next_m_id++);
  m->g0.kind = g_kind::scheduler;
  m->g0.state.store(g_state::running, relaxed);
  m->g0.thread = m;
  m->g = &m->g0;
  m->random = random_source(0x9e3779b97f4a7c15u * (m->id + 1));
  m->next_p = task.p;
  m->picked = task.picked;
  m->begins_idle = !task.p;
  m->spinning.store(task.spinning, relaxed);
  if (sched.options.hazard) m->requests.store(request::hazard, relaxed);
}

// Starts an M. Null: the run() is over, or there is no memory or no thread to be had; *error says why.
M* new_m(const first_task& task, std::uint64_t run, int* error) noexcept {
  const bool spare = !task.p;
  std::unique_ptr<M> m;
  {
    lock_guard hold(sched.mutex);
    *error = EAGAIN;
    if (is_over(run) || (!spare && sched.live_ms >= sched.options.max_threads)) return nullptr;
    m.reset(new (std::nothrow) M);
    if (!m) {
      *error = ENOMEM;
      return nullptr;
    }
    prepare(m.get(), task);  // before other threads can find it
    sched.all_ms.push_back(m.get());
    ++sched.live_ms;
  }
  M* raw = m.release();  // owned by its thread and by all_ms from here on
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

}  // namespace

bool pass_on(M* m, G* g) noexcept {
  {
    late_wakeup rest;
    lock_guard hold(sched.mutex);
    if (sched.shutting_down.load(relaxed)) return false;
    M* other = sched.idle_m_list;
    // g may be about to block (leave_thread), so it must not go where other goroutines are pinned.
    while (other && other->pins != 0) other = other->next_idle;
    if (other) {
      other->picked = g;
      wake_idle_m(other, releasep(m), false, rest);
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
  late_wakeup rest;
  lock_guard hold(sched.mutex);
  sched.spare_starts = false;
  if (!m) return error;
  if (sched.shutting_down.load(relaxed)) return 0;  // the M was woken for that, and may be gone
  idle_m_put(m);
  ++sched.untied_ms;
  if (P* p = p_for_want_of_thread()) {
    sched.spinning.fetch_add(1, seq_cst);
    wake_idle_m(m, p, true, rest);
  }
  return 0;
}

void start_first_m() {
  P* p;
  {
    lock_guard hold(sched.mutex);
    p = idle_p_get();
  }
  // If no P idles, threads of the program have already started goroutines, and with them Ms; or they are changing the
  // number of Ps.
  if (!p) return;
  // The M spins: it looks for main, and no other thread starts another M for that.
  sched.spinning.fetch_add(1, seq_cst);
  int error;
  if (new_m({.p = p, .spinning = true}, present_run(), &error)) return;
  bool have_another;
  {
    lock_guard hold(sched.mutex);
    idle_p_put(p);
    have_another = sched.live_ms != 0;  // which came of such a thread: there may be no more than that one
  }
  one_spins_less();
  if (have_another) return;
  throw std::system_error(error, std::generic_category(), "weft::run(): cannot start a thread");
}

// --- out of threads

namespace {

// When the system has refused a thread, it is not asked again for this long. Asking takes far longer than most
// goroutines run, so it must not happen for each wake-up that would like another M.
constexpr nanos ask_again_after = millisecond;

bool thread_was_refused() noexcept {
  nanos refused = sched.thread_refused.load(relaxed);
  return refused != 0 && nanotime() - refused < ask_again_after;
}

// A new thread takes over a lot from the one that starts it: its processors, priority, namespaces, and more. Goroutines
// are to run as run()'s caller does. So Ms are not started by a thread of the program, nor by one that a goroutine is
// tied to, which may have changed all that; sysmon does it for them. (In Go it is the "template thread".) The exception
// is a thread that had to stay when its tied goroutine ended, since others are pinned to it: for a goroutine that is
// about to block there, or to be tied, it starts a thread itself (pass_on, start_spare_m), so that those do not wait.
bool may_start_ms() noexcept {
  const thread_state* ts = this_thread_or_null();
  if (!ts) return false;
  if (!ts->worker) return ts->is_sysmon;
  const M* m = static_cast<const M*>(ts);
  return !m->locked_g.load(relaxed) && !m->changed;
}

}  // namespace

// "Out of threads": no thread can be had, because the system refuses one or because of options::max_threads, and so a P
// idles although it is wanted. The goroutines that it would have run go to the global queue, for the Ms that there are;
// its timers stay where they are. The Ms that run goroutines look at both when they come by (find_runnable). If none
// comes by, sysmon tries again. An M that is about to sleep must not do so: it takes an idle P and looks once more, as
// if it had been woken for that. So does a spare M, which would begin its life asleep.
//
//     start_new_m, in vain                          an M without a P
//     L1  goroutines to the global queue, P idle,   in stopm, start_spare_m: out_of_threads? takes a P. All under
//         out_of_threads = true; under sched.mutex, sched.mutex, under which start_new_m looks for an idle M
//         if no M idles
//     L2  an M dozes: wake it                       D1  dozer = itself; then looks at every queue (doze.cpp)
//         last_poll == 0: break the sleep off       P1  last_poll = 0; then out_of_threads? does not sleep
//                                                   (poller_sleep.cpp)
//
//     All of these are seq_cst: if L2 does not read D1 or P1, then D1 or P1 comes later, and what follows it sees L1.
//     While out of threads, an M that comes back without its P, from a system call or because it computed, does not
//     take an idle P but queues its goroutine like all others. It may be the only M that there is, and if it went on it
//     might never come by the scheduler.
//
//     A thread that may not start an M (may_start_ms) does as if none was to be had, and has sysmon start one:
//     m_wanted, then the wake-up; sysmon, awake, reads m_wanted before it sleeps (alarm_clock.hpp; deep_sleep: under
//     the mutex). An M that leaves does the same: at the limit on threads, one was refused while it still counted.
//     (docs/adr/0046-threads-of-tied-goroutines.md)
//
//     A thread of the program's may come so late that the P it took belongs to another run() by then. It forgets that
//     P. But as long as it counted as spinning, the threads of the new run() left their wake-ups to it, so it calls
//     wakep().
void start_new_m(P* p, bool spinning, std::uint64_t run) noexcept {
  const bool may_ask = !thread_was_refused(), by_sysmon = may_ask && !may_start_ms();
  int error;
  if (may_ask && !by_sysmon && new_m({.p = p, .spinning = spinning}, run, &error)) return;
  bool late;
  {
    late_wakeup rest;
    lock_guard hold(sched.mutex);
    late = is_over(run);
    if (!late && wake_some_idle_m(p, spinning, rest)) return;  // an M went idle meanwhile
    if (spinning) sched.spinning.fetch_sub(1, seq_cst);
    if (!late) {
      global_put_queue_of(p);
      idle_p_put(p);
      if (!sched.out_of_threads.load(relaxed)) sched.nobody_came_by = {nanotime(), all_dispatches()};
      sched.out_of_threads.store(true, seq_cst);  // L1
      if (by_sysmon && sched.live_ms < sched.options.max_threads) want_m_from_sysmon();
    }
  }
  if (late) return wakep();
  if (sched.dozer.load(seq_cst)) return rouse_dozer();                    // L2
  if (sched.last_poll.load(seq_cst) != 0) return warn_if_all_are_held();  // L2
  barrier_to_who_is_alone();                                              // S2b
  // Breaks off a sleep in the poller, but not for goroutines that are some P's runnext: two goroutines that talk to
  // each other would break it off for each word.
  if (look_beyond_next() != queued::nothing) netpoll_break();
}

P* idle_p_to_go_on(const M* m) noexcept {
  if (sched.world_stopping.load(relaxed) || sched.shutting_down.load(relaxed)) return nullptr;
  // A tied M runs no other goroutine, so it would not help the others to give way.
  bool gives_way = sched.out_of_threads.load(relaxed) && !m->locked_g.load(relaxed);
  return gives_way ? nullptr : idle_p_get();
}

void want_m_from_sysmon() noexcept {
  sched.m_wanted.store(true, seq_cst);
  wake_sysmon();
  sched.sysmon_pause.wakeup();
}

P* p_for_want_of_thread() noexcept {
  if (WEFT_LIKELY(!sched.out_of_threads.load(relaxed)) || sched.world_stopping.load(relaxed)) return nullptr;
  sched.out_of_threads.store(false, relaxed);
  return idle_p_get();
}

bool take_p_for_want_of_thread(M* m) noexcept {
  P* p = p_for_want_of_thread();
  if (!p) return false;
  acquirep(m, p);
  start_spinning(m);
  return true;
}

// --- the end

namespace {

// Joins the thread if it ends by `deadline`. pthread_timedjoin_np goes by the wall clock: if that is set meanwhile, the
// thread is given more time or less.
bool ends_by(pthread_t thread, nanos deadline) noexcept {
  const nanos left = deadline - nanotime();
  if (left <= 0) return pthread_tryjoin_np(thread, nullptr) == 0;
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  const nanos at = saturating_add(until.tv_sec * second + until.tv_nsec, left);
  until = {static_cast<time_t>(at / second), static_cast<long>(at % second)};
  return pthread_timedjoin_np(thread, nullptr, &until) == 0;
}

}  // namespace

void note_gone(M* m) noexcept {
  m->next_idle = sched.gone_ms.load(relaxed);
  sched.gone_ms.store(m, relaxed);
}

M* take_gone_ms() noexcept {
  if (!sched.gone_ms.load(relaxed)) return nullptr;
  lock_guard hold(sched.mutex);
  return sched.gone_ms.exchange(nullptr, relaxed);
}

void join_ms(M* gone, nanos deadline) noexcept {
  while (gone) {
    M* m = std::exchange(gone, gone->next_idle);
    if (ends_by(m->thread, deadline)) {
      delete m;
    } else {
      lock_guard hold(sched.mutex);
      note_gone(m);
    }
  }
}

}  // namespace weft::rt
