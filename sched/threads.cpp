// Ms as threads: how they begin, sleep while they have no P, and end; and what is done while no thread is to be had.

#include "sched/threads.hpp"

#include "netpoll/netpoll.hpp"
#include "runtime/time_slice.hpp"
#include "sched/alone.hpp"
#include "sched/burst.hpp"
#include "sched/lifecycle.hpp"
#include "sched/pin.hpp"
#include "sched/proc.hpp"
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

}  // namespace

void wake_idle_m(M* m, P* p, bool spinning) noexcept {
  idle_m_remove(m);
  m->spinning.store(spinning, relaxed);
  m->next_p = p;
  m->parked.wakeup();  // under the lock: the M may be gone once the runtime ends
}

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
  *fmt::format_to_n(name, sizeof name - 1, "weft-m{}", m->id).out = '\0';
  pthread_setname_np(pthread_self(), name);
  adopt_thread_stack(&m->g0, &m->thread_stack);
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // else the kernel adds up to 50 µs to every deadline
  use_short_slices(0);
  m->for_signals.use();
  m_main(m);
  set_this_thread(nullptr);  // what thread_locals' destructors do, a thread of the program does
  return nullptr;
}

// How an M begins.
struct first_task {
  P* p = nullptr;         // what it holds, or null: it sleeps until it is woken, and may be beyond max_threads
  bool spinning = false;  // it looks for work; the caller has counted it
  G* picked = nullptr;    // what it runs first
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

// Throws nothing: null if the run() is over, or there is no memory or no thread to be had; *error says why.
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
    prepare(m.get(), task);  // before anybody finds it
    sched.all_ms.push_back(m.get());
    ++sched.live_ms;
  }
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

}  // namespace

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

// --- out of threads

namespace {

// The system refused a thread: it is not asked again for each goroutine that would like to have company, as that takes
// far longer than most of them run.
constexpr nanos ask_again_after = millisecond;

bool thread_was_refused() noexcept {
  nanos refused = sched.thread_refused.load(relaxed);
  return refused != 0 && nanotime() - refused < ask_again_after;
}

}  // namespace

// When no thread can be had, because the system refuses it or by options::max_threads, the P idles although it is
// wanted ("out of threads"). What it would have run is for the Ms that there are, in the global queue; its timers stay
// where they are. The Ms that run goroutines look at both as they come by (find_runnable); if they do not come by,
// sysmon tries again. Those that are about to sleep must not: one takes an idle P and looks once more, as if it had
// been woken for that.
//
//     start_new_m, in vain                          an M without a P
//     L1  queue globally, P idle,                   in stopm: out_of_threads? takes a P. All under sched.mutex, where
//         out_of_threads = true; under sched.mutex, start_new_m looks for an idle M
//         if no M idles
//     L2  somebody dozes: wake it                   D1  dozer = itself; then looks at every queue (find.cpp)
//         last_poll == 0: break the sleep off       P1  last_poll = 0; then out_of_threads? does not sleep (find.cpp)
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
      global_put_queue_of(p);
      idle_p_put(p);
      sched.out_of_threads.store(true, seq_cst);  // L1
    }
  }
  if (late) return wakep();
  if (sched.dozer.load(seq_cst)) return rouse_dozer();                 // L2
  if (sched.last_poll.load(seq_cst) != 0) return warn_of_no_thread();  // L2
  barrier_to_who_is_alone();                                           // S2b
  // Not for what is some P's very next: two that talk would break it off for each word.
  if (look_beyond_next() != queued::nothing) netpoll_break();
}

P* idle_p_to_go_on(const M* m) noexcept {
  if (sched.world_stopping.load(relaxed) || sched.shutting_down.load(relaxed)) return nullptr;
  // One that is tied to its goroutine runs no other.
  bool gives_way = sched.out_of_threads.load(relaxed) && !m->locked_g.load(relaxed);
  return gives_way ? nullptr : idle_p_get();
}

bool take_p_for_want_of_thread(M* m) noexcept {
  if (WEFT_LIKELY(!sched.out_of_threads.load(relaxed)) || sched.world_stopping.load(relaxed)) return false;
  sched.out_of_threads.store(false, relaxed);
  P* p = idle_p_get();
  if (!p) return false;
  acquirep(m, p);
  start_spinning(m);
  return true;
}

// --- the end

namespace {

// pthread_timedjoin_np goes by the clock on the wall. If that is set meanwhile, a thread is given more time or less.
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
