#include "tests/support/simulation.hpp"

#include "sched/alone.hpp"
#include "sched/burst.hpp"
#include "sched/find.hpp"
#include "sched/poller_sleep.hpp"
#include "sched/runqueues.hpp"
#include "sysmon/thread_state.hpp"

#include <weft/weft.hpp>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <ctime>
#include <linux/futex.h>
#include <map>
#include <new>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>

namespace weft::test {

namespace {

simulation* present = nullptr;

const char in_poller = 0;  // threads that wait for events sleep on its address

rt::nanos to_nanos(const timespec& t) { return static_cast<rt::nanos>(t.tv_sec) * rt::second + t.tv_nsec; }

// --- threads

struct pretended_thread {
  std::size_t fiber;
  bool ended = false;
};
std::map<pthread_t, pretended_thread> threads;  // the key is our number for the thread
pthread_t last_thread = 0;

// The state of a thread that is not weft's, as in runtime/thread.cpp, but one for each simulated thread.
struct foreign_thread : rt::thread_state {
  rt::G own;
  foreign_thread() noexcept {
    own.kind = rt::g_kind::foreign;
    own.state.store(rt::g_state::running, rt::relaxed);
    own.thread = this;
    g = &own;
    bind_to_this_thread();
  }
};

// --- the kernel

long futex(const std::uint32_t* word, int op, std::uint32_t value, const timespec* deadline) {
  rt::interleave_point();
  interleaving::show_stores();
  switch (op & FUTEX_CMD_MASK) {
    case FUTEX_WAKE: interleaving::wake(word, static_cast<int>(value)); return 0;
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      if (!interleaving::running()) return 0;
      if (*word != value) {
        errno = EAGAIN;
        return -1;
      }
      if (interleaving::sleep_on(word, deadline ? to_nanos(*deadline) : rt::forever)) return 0;
      errno = ETIMEDOUT;
      return -1;
    default: std::abort();
  }
}

// A write to any descriptor wakes all that sleep here. Those for which nothing is ready go on sleeping.
long epoll_wait_until(const long* arguments, rt::nanos deadline) {
  const int fd = static_cast<int>(arguments[0]), most = static_cast<int>(arguments[2]);
  auto* events = reinterpret_cast<epoll_event*>(arguments[1]);
  for (;;) {
    rt::interleave_point();
    interleaving::show_stores();
    int n = ::epoll_wait(fd, events, most, 0);
    if (n != 0 || interleaving::now() >= deadline) return n;
    interleaving::sleep_on(&in_poller, deadline);
  }
}

// sysmon's alarm. Setting it wakes the sleeper, which checks whether the alarm rings already.
rt::nanos alarm_rings = rt::forever;

bool sleep_until_alarm(rt::nanos deadline) {
  for (;;) {
    rt::interleave_point();
    interleaving::show_stores();
    if (alarm_rings <= interleaving::now()) return true;
    if (deadline <= interleaving::now()) return false;
    interleaving::sleep_on(&alarm_rings, std::min(deadline, alarm_rings));
  }
}

// True if a goroutine is in a P's ring or in the global queue. `crumbs` has a bit for each P: the rings of those Ps are
// left out, and so is the global queue if any bit is set, as it has what overflowed from those rings. This does not use
// the scheduler's own check (look_at_queues), which is under test.
bool work_in_rings(std::uint32_t crumbs) {
  if (crumbs == 0 && rt::sched.global_size.load(rt::relaxed) != 0) return true;
  for (std::uint32_t i = 0; i < rt::sched.procs.load(rt::relaxed); ++i) {
    if (rt::sched.idle_mask.has(i) || crumbs >> i & 1) continue;
    if (!rt::sched.all_ps[i].load(rt::relaxed)->runq.ring_empty()) return true;
  }
  return false;
}

}  // namespace

simulation::simulation(std::uint64_t seed) : interleaving(seed), procs_(1 + static_cast<unsigned>(seed % 3)) {
  present = this;
  rt::sched.next_m_id = 1;  // Ms seed their random numbers with their ids
  rt::alone_ended.store(rt::alone_ends::not_yet, rt::relaxed);
  alarm_rings = rt::forever;
  stall_threads();
  keep_stores();
}

void simulation::add(std::function<void()> thread) {
  interleaving::add([body = std::move(thread)] {
    foreign_thread state;
    rt::set_this_thread(&state);
    body();
    rt::set_this_thread(nullptr);
  });
}

void simulation::add_weft(std::function<void()> main, unsigned max_threads) {
  add([this, max_threads, body = std::move(main)] { weft::run(body, {.procs = procs_, .max_threads = max_threads}); });
}

std::string simulation::run() {
  constexpr std::size_t max_steps = 2'000'000;
  static bool in_order = true;
  if (!in_order) return "not tried, as another one has failed";
  in_order = false;
  std::string wrong = interleaving::run(max_steps);
  in_order = wrong.empty();
  return wrong;
}

// A sleep: other threads cannot tell it from computing. It ends at a multiple of `round`, so that several threads often
// go on at the same time.
void simulation::compute(rt::nanos d) {
  constexpr rt::nanos round = 5 * rt::microsecond;
  char nobody_wakes = 0;
  sleep_on(&nobody_wakes, (now() + d) / round * round + round);
}

void* simulation::take_thread_state() noexcept {
  look_for_crumbs();
  return rt::this_thread_or_null();
}
void simulation::put_thread_state(void* state) noexcept { rt::set_this_thread(static_cast<rt::thread_state*>(state)); }

// A ring that held crumbs at any time during a doze is left to the dozer until it wakes, even if a thief has changed
// its opinion of that ring (spoils_here) since.
void simulation::look_for_crumbs() noexcept {
  using namespace rt;
  if (!sched.dozer.load(relaxed)) crumbs_in_doze_ = 0;
  for (std::uint32_t i = 0; i < sched.procs.load(relaxed); ++i) {
    const bool work = sched.all_ps[i].load(relaxed)->spoils_here.load(relaxed) == spoils::work;
    crumbs_in_doze_ |= std::uint32_t{!work} << i;
  }
}

std::string simulation::all_sleep() {
  using namespace rt;
  if (!sched.running.load(relaxed) || sched.shutting_down.load(relaxed) || sched.world_stopping.load(relaxed))
    return "";
  for (const M* m : sched.all_ms) {
    bool idles = m->in_idle_list || m->in_poller.load(relaxed);
    if (idles && !m->pinned_ready.empty()) return "an M sleeps, and a goroutine that is pinned to it is ready";
  }
  if (sched.idle_ps.load(relaxed) == 0) return "";
  // A thread has missed an unlock, and looks again soon (lock.cpp: barrier_after).
  if (std::ranges::any_of(lock_bells, [](const lock_bell& b) { return b.rings.load(relaxed) != 0; })) return "";
  // An M that looks for work pauses until the M that was alone is aware that others have come (alone.cpp).
  for (const M* m : sched.all_ms) {
    if (m->p.load(relaxed) && m->g == &m->g0) return "";
  }
  if (sched.promiser.load(relaxed)) {
    // sysmon pauses for at least 20 µs, and gives the kernel a duration, so its sleep may end a little later.
    const bool watched = earliest_deadline_on(&alarm_rings) <= promise_due() + 25 * microsecond;
    return watched ? "" : "somebody has promised to do what there is, and sysmon sleeps longer than that holds";
  }
  if (sched.live_ms >= sched.options.max_threads && sched.idle_ms == 0 && !sched.dozer.load(relaxed)) {
    if (sched.last_poll.load(relaxed) != 0) return "";
    if (work_in_rings(0)) return "a goroutine is queued, no thread can be had, and one sleeps in the poller";
    if (look_at_queues() != queued::nothing) return "";
  }
  if (const M* dozer = sched.dozer.load(relaxed)) {
    if (!dozer->help.is_away())
      return work_in_rings(crumbs_in_doze_) ? "a goroutine is queued, and somebody dozes" : "";
    // What is in the rings waits for the end of the doze.
    const bool came_since =
        crumbs_in_doze_ == 0 && sched.global_size.load(relaxed) > sched.left_in_global.load(relaxed);
    return came_since ? "a goroutine was queued globally, and somebody stays away" : "";
  }
  if (look_at_queues() != queued::nothing) return "a goroutine is queued, a P idles, and everybody sleeps";
  // sysmon takes care of later timers (timer_wants_poller).
  nanos timer = earliest_timer();
  if (timer != 0 && timer - now() > 5 * millisecond) return "";
  // The kernel is given a duration, so the sleep may end a little later.
  bool polled = earliest_deadline_on(&in_poller) != forever && sched.poll_until.load(relaxed) <= timer;
  if (timer != 0 && !polled) return "nobody sleeps in the poller for the next timer";
  return "";
}

}  // namespace weft::test

// --- in place of the library's: memory is freed only after the thread's stores were shown, so none hits its next owner

void* operator new(std::size_t size) {
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t align) {
  auto a = static_cast<std::size_t>(align);
  if (void* p = std::aligned_alloc(a, (size + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  weft::test::interleaving::show_stores();
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept { operator delete(p); }
void operator delete(void* p, std::align_val_t) noexcept { operator delete(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { operator delete(p); }

// --- in place of the system's

using namespace weft;
using test::interleaving;
using test::present;
using test::threads;

extern "C" {

int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t*, void* (*f)(void*), void* arg) {
  interleaving::show_stores();
  *thread = ++test::last_thread;
  pthread_t number = *thread;
  threads[number].fiber = present->interleaving::add([=] {
    f(arg);
    threads[number].ended = true;
  });
  return 0;
}

int __wrap_pthread_join(pthread_t thread, void**) {
  interleaving::wait_until([=] { return threads[thread].ended; });
  threads.erase(thread);
  return 0;
}

int __wrap_pthread_timedjoin_np(pthread_t thread, void** result, const timespec*) {
  return __wrap_pthread_join(thread, result);  // the time limit does not matter: all threads end soon
}

int __wrap_pthread_tryjoin_np(pthread_t thread, void**) {
  if (!threads[thread].ended) return EBUSY;
  threads.erase(thread);
  return 0;
}

int __wrap_pthread_detach(pthread_t thread) {
  present->forget(threads.at(thread).fiber);
  return 0;
}
int __wrap_pthread_setname_np(pthread_t, const char*) { return 0; }

int __wrap_sigaltstack(const stack_t*, stack_t* before) {
  if (before) before->ss_flags = SS_DISABLE;
  return 0;
}

int __wrap_nanosleep(const timespec* d, timespec*) {
  test::simulation::compute(test::to_nanos(*d));
  return 0;
}

std::int64_t __real__ZNSt6chrono3_V212steady_clock3nowEv();
std::int64_t __wrap__ZNSt6chrono3_V212steady_clock3nowEv() {
  return interleaving::running() ? rt::nanotime() : __real__ZNSt6chrono3_V212steady_clock3nowEv();
}

int __real_clock_gettime(clockid_t clock, timespec* t);
int __wrap_clock_gettime(clockid_t clock, timespec* t) {
  if (clock != CLOCK_MONOTONIC || !interleaving::running()) return __real_clock_gettime(clock, t);
  interleaving::pass_time(present->random().below(100));
  t->tv_sec = static_cast<time_t>(interleaving::now() / rt::second);
  t->tv_nsec = static_cast<long>(interleaving::now() % rt::second);
  return 0;
}

int __wrap_timerfd_settime(int, int, const itimerspec* at, itimerspec*) {
  rt::interleave_point();
  interleaving::show_stores();
  const rt::nanos when = test::to_nanos(at->it_value);
  // Until the alarm rings, nobody else takes the promise that it is set for (B1 before B2, burst.cpp). Later alarms are
  // not for promises (have_sysmon_poll).
  const bool for_promise = when > interleaving::now() && when <= interleaving::now() + 150 * rt::microsecond;
  interleaving::check(!for_promise || rt::sched.promiser.load(rt::relaxed), "an alarm for no promise");
  test::alarm_rings = when == 0 ? rt::forever : when;
  interleaving::wake(&test::alarm_rings, INT_MAX);
  return 0;
}
int __wrap_ppoll(pollfd* fds, nfds_t, const timespec* timeout, const sigset_t*) {
  const bool rings = test::sleep_until_alarm(interleaving::now() + test::to_nanos(*timeout));
  fds->revents = rings ? POLLIN : 0;
  return rings ? 1 : 0;
}

ssize_t __real_write(int fd, const void* data, std::size_t size);
ssize_t __wrap_write(int fd, const void* data, std::size_t size) {
  rt::interleave_point();
  interleaving::show_stores();
  ssize_t n = __real_write(fd, data, size);
  interleaving::wake(&test::in_poller, INT_MAX);
  return n;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& x : a) x = va_arg(list, long);
  va_end(list);
  switch (number) {
    case SYS_futex:
      return test::futex(reinterpret_cast<std::uint32_t*>(a[0]), static_cast<int>(a[1]),
                         static_cast<std::uint32_t>(a[2]), reinterpret_cast<timespec*>(a[3]));
    case SYS_epoll_pwait: {
      const int ms = static_cast<int>(a[3]);
      if (ms > 0) std::abort();  // only where the kernel has no epoll_pwait2
      return test::epoll_wait_until(a, ms == 0 ? interleaving::now() : rt::forever);
    }
    case SYS_epoll_pwait2:
      return test::epoll_wait_until(a, interleaving::now() + test::to_nanos(*reinterpret_cast<timespec*>(a[3])));
    case SYS_membarrier:
      rt::interleave_point();
      interleaving::show_all_stores();
      return 0;
    case SYS_sched_getattr: errno = ENOSYS; return -1;
    default: return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
}

// In place of what /proc says of a thread: any answer.
rt::thread_does __wrap__ZN4weft2rt14look_at_threadEi(int) {
  return static_cast<rt::thread_does>(present->random().below(3));
}
rt::nanos __wrap__ZN4weft2rt11thread_timeEi(int) { return interleaving::now(); }

}  // extern "C"
