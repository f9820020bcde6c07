#include "weft/runtime.hpp"

#include "api/src/environment.hpp"
#include "api/src/goroutine.hpp"
#include "api/src/quit_signal.hpp"
#include "api/src/support.hpp"
#include "api/src/sync/parking.hpp"
#include "runtime/overflow.hpp"
#include "runtime/stack.hpp"
#include "sysmon/sysmon.hpp"
#include "weft/go.hpp"

#include <sched.h>
#include <stdexcept>
#include <unistd.h>

namespace weft {

namespace detail {

namespace {

// What run()'s caller waits for. Lives on its stack: run() returns only after no goroutine touches it any more.
struct main_goroutine {
  void (*main)(void*);
  void* arg;
  std::exception_ptr thrown;
  rt::note* ended;

  void operator()() noexcept(false) {
    try {
      main(arg);
    } catch (const goroutine_exit&) {
      throw;  // the others go on; run() never returns by this one
    } catch (...) {
      thrown = std::current_exception();
    }
    rt::sched.main_ended.store(true, rt::release);
    ended->wakeup();
  }
};

}  // namespace

void run_main(const options& o, void (*main)(void*), void* arg) {
  rt::thread_state* ts = rt::this_thread_or_null();
  if (ts && ts->worker) throw std::logic_error("weft::run(): called from a goroutine");
  rt::scheduler_options effective = effective_options(o);
  rt::start_runtime(effective);

  rt::note ended;
  main_goroutine m{main, arg, nullptr, &ended};
  {
    quit_signal_scope quit(o.sigquit_dump);
    struct stopper {
      bool sysmon = false;
      ~stopper() {
        if (sysmon) rt::stop_sysmon();
        ring_for_all(+1);
        rt::stop_runtime();
        ring_for_all(-1);
      }
    } stop;
    rt::install_overflow_handler();
    rt::start_sysmon();
    stop.sysmon = true;
    // main first: it is goroutine 1.
    go({.name = "main"}, [&m] { m(); });
    rt::start_housekeeper();
    ended.sleep();
  }
  if (m.thrown) std::rethrow_exception(m.thrown);
}

void enter_blocking() noexcept { rt::enter_syscall(); }
void leave_blocking() noexcept { rt::exit_syscall(); }

}  // namespace detail

unsigned procs() noexcept { return rt::sched.running.load(rt::acquire) ? rt::sched.procs.load(rt::acquire) : 0; }

unsigned set_procs(unsigned n) {
  rt::throw_if_not_running("set_procs");
  if (n == 0 || n > rt::max_procs) {
    throw std::invalid_argument(fmt::format("weft::set_procs: {} is not from 1 to {}", n, rt::max_procs));
  }
  rt::sched.follow_cpus.store(false, rt::relaxed);
  return rt::set_procs(n);
}

std::size_t num_goroutines() noexcept { return rt::count_goroutines(); }

void yield() noexcept {
  rt::runtime_scope scope;
  if (scope.m()) {
    scope.resumed_on(rt::yield_now(scope.m()));
  } else {
    ::sched_yield();
  }
}

namespace {
rt::M* goroutines_only(rt::M* m, const char* what) {
  if (!m) throw std::logic_error(fmt::format("weft: {} may be called by goroutines only", what));
  return m;
}
}  // namespace

void lock_os_thread() {
  rt::runtime_scope scope;
  rt::lock_os_thread(goroutines_only(scope.m(), "lock_os_thread"));
}

void unlock_os_thread() {
  rt::runtime_scope scope;
  rt::unlock_os_thread(goroutines_only(scope.m(), "unlock_os_thread"));
}

stats runtime_stats() noexcept {
  stats s;
  s.goroutines = rt::count_goroutines();
  s.spawned = rt::sched.foreign_spawned.load(rt::relaxed);
  s.polls = rt::sched.polls_by_others.load(rt::relaxed);
  s.preemptions = rt::sched.preemptions.load(rt::relaxed);
  s.retakes = rt::sched.retakes.load(rt::relaxed);
  s.global_queue = rt::sched.global_size.load(rt::relaxed) + rt::newcomers_aside();
  s.runnable = s.global_queue;
  s.procs = procs();
  s.idle_procs = s.procs ? rt::sched.idle_ps.load(rt::relaxed) : 0;
  s.spinning_threads = rt::sched.spinning.load(rt::relaxed);
  for (auto& slot : rt::sched.all_ps) {
    rt::P* p = slot.load(rt::acquire);
    if (!p) break;
    s.spawned += p->count.spawned.get();
    s.dispatches += rt::dispatches(p);
    s.yields += p->count.yields.get();
    s.steals += p->count.steals.get();
    s.polls += p->count.polls.get();
    for (const rt::owned_counter& c : p->count.parks) s.parks += c.get();
    s.runnable += p->runq.size();
    s.timers += p->timers.size();
    s.running += p->status.load(rt::relaxed) == rt::p_status::running;
  }
  {
    rt::runtime_scope scope;
    rt::lock_guard hold(rt::sched.mutex);
    s.threads = rt::sched.live_ms;
    s.idle_threads = rt::sched.idle_ms;
    s.running += rt::sched.detached_ms.load(rt::relaxed);
  }
  std::uint64_t busy = s.runnable + s.running;
  s.waiting = s.goroutines > busy ? s.goroutines - busy : 0;
  s.stacks = rt::stack_count().slots;
  return s;
}

void dump_goroutines(std::FILE* out) {
  std::fflush(out);
  rt::runtime_scope scope;
  if (!rt::sched.running.load(rt::acquire)) return;
  // Nobody is resumed while its stack is read.
  scope.resumed_on(rt::acquire_world(scope.m()));
  rt::dump_goroutines(::fileno(out), rt::dump_of::all_goroutines, rt::names::demangled);
  rt::release_world();
}

}  // namespace weft
