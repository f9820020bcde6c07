#include "weft/runtime.hpp"

#include "api/src/environment.hpp"
#include "api/src/goroutine.hpp"
#include "api/src/quit_signal.hpp"
#include "api/src/support.hpp"
#include "api/src/sync/parking.hpp"
#include "runtime/g_pool.hpp"
#include "runtime/overflow.hpp"
#include "runtime/report.hpp"
#include "runtime/stack.hpp"
#include "runtime/stack_use.hpp"
#include "sched/alone.hpp"
#include "sched/dump.hpp"
#include "sched/lifecycle.hpp"
#include "sched/locked.hpp"
#include "sched/newcomers.hpp"
#include "sched/park.hpp"
#include "sched/pin.hpp"
#include "sched/process_exit.hpp"
#include "sched/spawn.hpp"
#include "sched/syscall.hpp"
#include "sched/threads.hpp"
#include "sched/world.hpp"
#include "sysmon/sysmon.hpp"
#include "weft/go.hpp"
#include "weft/time.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <sched.h>
#include <span>
#include <stdexcept>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace weft {

namespace detail {

namespace {

// The main goroutine, for which run()'s caller waits. Lives on that caller's stack: run() returns only after no
// goroutine touches it any more.
struct main_goroutine {
  void (*main)(void*);
  void* arg;
  std::exception_ptr thrown;
  rt::note* ended;
  pid_t process = ::getpid();
  bool is_first_thread = ::gettid() == process;  // run()'s caller

  void operator()() noexcept(false) {
    rt::sched.main.store(rt::main_state::runs, rt::release);
    try {
      rt::start_housekeeper();
      main(arg);
    } catch (const goroutine_exit&) {
      throw;  // the other goroutines go on, and run() does not return because of this
    } catch (...) {
      thrown = std::current_exception();
      if (!thrown) rt::fatal("goroutine {}: main ends with an exception that is not C++'s", rt::this_thread()->g->id);
    }
    // The process then ends with the value that exit() was given (process_exit.hpp).
    if (rt::process_exits()) {
      do sleep(std::chrono::seconds(1));
      while (is_first_thread);
    }
    if (::getpid() != process) rt::fatal("main returned in a child of fork(): such a child may only exec or _exit");
    end_locals();  // now, since nobody waits for what their destructors do after main has ended
    rt::sched.main.store(rt::main_state::ended, rt::release);
    ended->wakeup();
  }
};

void print_stack_use() {
  std::vector<stack_use> uses = stack_high_water();
  rt::report out(STDERR_FILENO, rt::names::demangled);
  for (const stack_use& u : uses) {
    char line[160];
    auto r = fmt::format_to_n(line, sizeof line, "weft: stacks: {} bytes of {} at most, {} goroutines{}", u.deepest,
                              u.stack_size, u.goroutines, u.started_at ? ", started by " : "");
    std::string_view text(line, std::min(r.size, sizeof line));
    if (u.started_at) {
      out.frame(text, {u.started_at});
    } else {
      out.line("{}", text);
    }
  }
}

}  // namespace

void run_main(const options& o, void (*main)(void*), void* arg, standard_library) {
  rt::thread_state* ts = rt::this_thread_or_null();
  if (ts && ts->worker) {
    rt::leave_runtime(rt::enter_without_locks());  // the goroutine stays here for good if its run() is over
    throw std::logic_error("weft::run(): called from a goroutine");
  }
  rt::scheduler_options effective = effective_options(o);
  rt::start_runtime(effective);

  rt::note ended;
  main_goroutine m{main, arg, nullptr, &ended};
  {
    quit_signal_scope quit(o.sigquit_dump);
    struct stopper {
      bool sysmon = false;
      std::optional<terminate_watch> exceptions;
      ~stopper() {
        if (sysmon) rt::stop_sysmon();
        rt::end_alone();  // from here on this thread takes locks of goroutines itself
        ring_for_all(+1);
        rt::stop_runtime();
        ring_for_all(-1);
        threads_look_at_semaphores();
        exceptions.reset();  // the next run() has its own
        rt::let_next_run_begin();
      }
    } stop;
    stop.exceptions.emplace();
    rt::install_overflow_handler();
    rt::start_sysmon();
    stop.sysmon = true;
    rt::start_first_m();
    // Started before any other goroutine: in a process's first run() it is goroutine 1.
    go({.name = "main"}, [&m] { m(); });
    ended.sleep();
    if (effective.print_stacks) print_stack_use();
  }
  if (m.thrown) std::rethrow_exception(m.thrown);
}

WEFT_NOINLINE void enter_blocking() noexcept { rt::enter_syscall(rt::call_site_here()); }
void leave_blocking() noexcept { rt::exit_syscall(); }

}  // namespace detail

unsigned procs() noexcept { return rt::sched.running.load(rt::acquire) ? rt::sched.procs.load(rt::acquire) : 0; }

unsigned set_procs(unsigned n) {
  if (n == 0 || n > rt::max_procs) {
    throw std::invalid_argument(fmt::format("weft::set_procs: {} is not from 1 to {}", n, rt::max_procs));
  }
  rt::throw_if_not_running("set_procs");
  rt::sched.follow_cpus.store(false, rt::relaxed);
  return rt::set_procs(n, rt::who_sets::program);
}

std::size_t num_goroutines() noexcept { return rt::count_goroutines(); }

void yield() noexcept {
  rt::M* m = rt::enter_runtime();
  if (!m) {
    ::sched_yield();
    return;
  }
  rt::with_predicted_return(m, [](rt::M*& on) {
    on = rt::yield_now(on);
    return true;
  });
}

namespace {
rt::M* goroutines_only(rt::M* m, const char* what) {
  if (!m) throw std::logic_error(fmt::format("weft: {} may be called by goroutines only", what));
  return m;
}
}  // namespace

void lock_os_thread() {
  rt::runtime_scope scope;
  int error;
  scope.resumed_on(rt::lock_os_thread(goroutines_only(scope.m(), "lock_os_thread"), &error));
  if (error != 0) {
    throw std::system_error(error, std::generic_category(),
                            "weft::lock_os_thread(): cannot start a thread for the other goroutines");
  }
}

void unlock_os_thread() {
  rt::runtime_scope scope;
  rt::unlock_os_thread(goroutines_only(scope.m(), "unlock_os_thread"));
}

pin::pin() {
  rt::runtime_scope scope;
  rt::pin(goroutines_only(scope.m(), "pin"));
}

pin::~pin() {
  rt::runtime_scope scope;
  if (!scope.m()) rt::fatal("a weft::pin ends on a thread that is no goroutine");
  rt::unpin(scope.m());
}

no_preemption::no_preemption() {
  rt::runtime_scope scope;
  rt::G* g = goroutines_only(scope.m(), "no_preemption")->g;
  ++g->no_preemption;
  g->set_mark(rt::mark::uses_seldom);
}

no_preemption::~no_preemption() {
  rt::runtime_scope scope;
  rt::M* m = scope.m();
  if (!m) rt::fatal("a weft::no_preemption ends on a thread that is no goroutine");
  if (m->g->no_preemption == 0) {
    rt::fatal("goroutine {}: a weft::no_preemption ends in a goroutine that did not begin it", m->g->id);
  }
  // Requests that were put off meanwhile are answered now. Inside the runtime (where values are moved, under a
  // channel's lock), the next entry answers them.
  bool over = --m->g->no_preemption == 0 && m->depth.load(rt::relaxed) == 1;
  if (over && m->requests.load(rt::relaxed) != 0) scope.resumed_on(rt::enter_slow(m));
}

namespace {

template <class Sums, class Counters>
void add_each(Sums& sums, const Counters& counters) noexcept {
  static_assert(std::tuple_size_v<Sums> >= std::tuple_size_v<Counters>);
  for (std::size_t i = 0; i < counters.size(); ++i) sums[i] += counters[i].get();
}

// Adds what all Ps that ever existed have counted, and what is in their queues.
void add_ps(stats& s) noexcept {
  for (auto& slot : rt::sched.all_ps) {
    rt::P* p = slot.load(rt::acquire);
    if (!p) break;
    s.spawned += p->count.spawned.get();
    s.dispatches += rt::dispatches(p);
    s.yields += p->count.yields.get();
    s.wakeups += p->count.wakeups.get();
    s.steals += p->count.steals.get();
    s.spins += p->count.spins.get();
    s.polls += p->count.polls.get();
    add_each(s.parks_by_reason, p->count.parks);
    add_each(s.latency, p->count.latency);
    std::uint64_t queued = p->runq.size();
    s.local_queues += queued;
    s.longest_queue = std::max(s.longest_queue, queued);
    s.timers += p->timers.size();
    s.running += p->status.load(rt::relaxed) == rt::p_status::running;
  }
  s.parks = std::accumulate(s.parks_by_reason.begin(), s.parks_by_reason.end(), std::uint64_t{0});
}

void add_threads(stats& s) noexcept {
  rt::runtime_scope scope;
  rt::lock_guard hold(rt::sched.mutex);
  if (!rt::sched.running.load(rt::relaxed)) return;
  s.threads = rt::sched.live_ms;
  s.idle_threads = rt::sched.idle_ms;
  s.locked_threads = static_cast<std::uint32_t>(std::max(static_cast<std::int32_t>(rt::sched.idle_locked_ms), 0));
  s.detached = rt::sched.detached_ms.load(rt::relaxed);
  s.hogs = rt::sched.hogs.load(rt::relaxed);
  for (const rt::M* m : rt::sched.all_ms) {
    s.in_calls += (m->requests.load(rt::relaxed) & rt::request::in_syscall) != 0;
  }
  s.running += s.detached + s.in_calls;
}

}  // namespace

stats runtime_stats() noexcept {
  stats s;
  s.goroutines = rt::count_goroutines();
  s.spawned = rt::sched.foreign_spawned.load(rt::relaxed);
  s.wakeups = rt::sched.foreign_wakeups.load(rt::relaxed);
  s.thread_wakeups = rt::sched.thread_wakeups.load(rt::relaxed);
  s.polls = rt::sched.polls_by_others.load(rt::relaxed);
  s.preemptions = rt::sched.preemptions.load(rt::relaxed);
  s.preemptions_taken = rt::sched.preemptions_taken.load(rt::relaxed);
  s.retakes = rt::sched.retakes.load(rt::relaxed);
  s.detachments = rt::sched.detachments.load(rt::relaxed);
  s.newcomers = rt::newcomers_aside();
  s.global_queue = rt::sched.global_size.load(rt::relaxed) + s.newcomers;
  s.procs = procs();
  s.idle_procs = s.procs ? rt::sched.idle_ps.load(rt::relaxed) : 0;
  s.spinning_threads = rt::sched.spinning.load(rt::relaxed);
  add_ps(s);
  add_threads(s);
  s.runnable = s.global_queue + s.local_queues;
  std::uint64_t busy = s.runnable + s.running;
  s.waiting = s.goroutines > busy ? s.goroutines - busy : 0;
  s.stacks = rt::stack_count().slots;
  return s;
}

std::string_view wait_reason_name(std::size_t i) noexcept {
  static_assert(rt::wait_reasons <= std::tuple_size_v<decltype(stats::parks_by_reason)>);
  return i < rt::wait_reasons ? rt::describe(static_cast<rt::wait_reason>(i)) : std::string_view();
}

namespace {

void add_living(rt::G* g, void* to) noexcept {
  rt::g_state s = g->get_state();
  if (g->is_system() || !g->own_stack || s == rt::g_state::idle || s == rt::g_state::dead ||
      s == rt::g_state::abandoned) {
    return;
  }
  bool runs = s == rt::g_state::running || s == rt::g_state::syscall;
  static_cast<rt::stack_uses*>(to)->add(g, rt::stack_depth(g, runs));
}

}  // namespace

void detail::for_each_stack_use(void (*f)(void* arg, const stack_use&), void* arg) {
  auto uses = std::make_unique<rt::stack_uses>();
  {
    rt::runtime_scope scope;
    rt::M* m = scope.m();
    if (rt::measuring_stacks.load(rt::relaxed) && rt::sched.running.load(rt::acquire) && rt::acquire_world(&m)) {
      scope.resumed_on(m);
      rt::copy_stack_uses(*uses);
      rt::for_each_g(add_living, uses.get());
      rt::release_world();
    } else {
      rt::copy_stack_uses(*uses);
    }
  }
  const std::span found(std::begin(uses->list), uses->count);
  std::ranges::sort(found, std::ranges::greater(), &rt::stack_use::deepest);
  for (const rt::stack_use& u : found) f(arg, {u.spawn_pc, u.stack_size, u.goroutines, u.deepest});
}

namespace {

void dump_to(int fd) {
  rt::runtime_scope scope;
  if (!rt::sched.running.load(rt::acquire)) return;
  rt::M* m = scope.m();
  if (!rt::acquire_world(&m)) return;
  scope.resumed_on(m);
  rt::goroutine_dump dump;
  dump.take();  // no goroutine is resumed while its stack is read
  rt::release_world();
  dump.write(fd, rt::names::demangled);
}

}  // namespace

void dump_goroutines(std::FILE* out) {
  // The code that writes the dump must not wait, neither for the code behind a stream that the program made nor for a
  // goroutine that reads the other end of a pipe. So the dump goes through a file of its own.
  const int held = ::memfd_create("weft-dump", MFD_CLOEXEC);
  if (held < 0) return static_cast<void>(std::fprintf(out, "weft: no file for the dump: %s\n", std::strerror(errno)));
  dump_to(held);
  char part[1024];
  ssize_t n;
  ::lseek(held, 0, SEEK_SET);
  std::optional<pin> here;  // the thread's signal mask is changed, and writing to the stream may suspend this goroutine
  if (rt::this_m()) here.emplace();
  rt::no_sigpipe quiet;
  while ((n = ::read(held, part, sizeof part)) > 0) {
    const auto size = static_cast<std::size_t>(n);
    if (std::fwrite(part, 1, size, out) != size) quiet.write_failed(errno);
  }
  ::close(held);
  if (std::fflush(out) != 0) quiet.write_failed(errno);
}

}  // namespace weft
