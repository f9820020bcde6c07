// How the runtime starts and ends.
//
// The runtime ends when main has returned. It does not wait for the other goroutines. No waker claims a goroutine any
// more (goroutines_stop), so that plain threads that wait behind goroutines get their turn. Each M stops when it next
// comes by: in the scheduler's loop, or when its goroutine enters the runtime (the request `stop`). A goroutine that
// computes or blocks is given at most options::shutdown_grace to come by. Then its thread is left behind: it is marked
// `abandoned`, and sleeps for good at its next call. In the end every goroutine that has not ended is abandoned, also
// for later runs: its stack and what it owns stay as they are.

#include "sched/lifecycle.hpp"

#include "netpoll/netpoll.hpp"
#include "runtime/copies.hpp"
#include "runtime/deadline_clock.hpp"
#include "runtime/g_pool.hpp"
#include "runtime/held_locks.hpp"
#include "runtime/report.hpp"
#include "runtime/sanitizer.hpp"
#include "runtime/stack_use.hpp"
#include "sched/alone.hpp"
#include "sched/dump.hpp"
#include "sched/io.hpp"
#include "sched/park.hpp"
#include "sched/proc.hpp"
#include "sched/spawn.hpp"
#include "sched/threads.hpp"
#include "sched/world.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace weft::rt {

namespace {

constinit atomic<bool> started{false};

constexpr nanos time_to_end = 100 * millisecond;  // the least that threads whose Ms are gone are given to end

void leave_runtime_of(thread_state* ts) noexcept { leave_runtime(static_cast<M*>(ts)); }

void ready_if_not_abandoned(G* g) noexcept {
  if (g->claim(no_ticket)) ready(g);
}

// A plain thread may misuse a lock before any run(), too.
WEFT_EARLY void dump_on_misuse() noexcept {
  set_dump_hook([](dump_of what) noexcept { dump_goroutines(2, what, names::demangled); });
}

// Installs the functions that lower layers call while goroutines run.
void set_hooks() {
  stay_loaded();
  poll_set_ready(ready_if_not_abandoned);
  set_goroutine_life({leave_runtime_of, end_goroutine});
}

// With detect_stack_use_after_return, locals whose address is taken lie in separate ("fake") frames, and the stack
// points to these. Makes the fake frames that the stack between `from` and `to` points to known to LeakSanitizer.
WEFT_NO_FAKE_STACK void show_fake_frames(const G* g, const std::byte* from, const std::byte* to) noexcept {
  for (; from + sizeof(void*) <= to; from += sizeof(void*)) {
    void *address, *begin, *end;
    std::memcpy(&address, from, sizeof address);
    if (!__asan_addr_is_in_fake_stack(g->fake_stack, address, &begin, &end)) continue;
    __lsan_register_root_region(
        begin, static_cast<std::size_t>(static_cast<std::byte*>(end) - static_cast<std::byte*>(begin)));
  }
}

// Makes g and its stack roots for LeakSanitizer: what the frames of a goroutine own that has not run to its end is
// still reachable from them, so it is not a leak.
void show_to_leak_sanitizer(G* g) noexcept {
  __lsan_register_root_region(g, sizeof *g);
  const stack* s = g->own_stack;
  const bool runs = g->get_state() == g_state::running || g->get_state() == g_state::syscall;
  auto* from = runs && s ? s->lo : static_cast<std::byte*>(g->context ? g->context : g->closure);
  if (!s || from < s->lo || from >= s->hi) return;
  __lsan_register_root_region(from, static_cast<std::size_t>(s->hi - from));
  if (g->fake_stack && __asan_addr_is_in_fake_stack) show_fake_frames(g, from, s->hi);
}

bool is_unfinished(const G* g) noexcept {
  g_state s = g->get_state();
  return s != g_state::idle && s != g_state::dead && s != g_state::abandoned;
}

// True if no M runs g, and there is nothing left on its stack to destroy.
bool as_good_as_ended(const G* g) noexcept {
  g_state s = g->get_state();
  return (s == g_state::waiting || s == g_state::runnable) && (g == sched.housekeeper || g->marks() & mark::ended);
}

void show_all_to_leak_sanitizer() noexcept {
  for_each_g(
      [](G* g, void*) {
        if (is_unfinished(g)) show_to_leak_sanitizer(g);
      },
      nullptr);
}

// Resets, at the beginning of a run(), what tells of one run() only. What tells of the process stays, such as counters,
// the next numbers of Ms and Gs, the threads that were left behind or are to be joined, and what the program has
// registered (external_sources, tick_hook). So do two numbers of waiting or searching threads: `spinning`, since a
// thread that comes late may still be counted in it (start_new_m), except that the count of an M that was left behind
// with its promise is taken off (burst.cpp); and foreign_poll_waiters, which counts plain threads. In the child of a
// fork(), what tells of its parent's threads is reset as well.
void reset() noexcept {
  lock_guard hold(sched.mutex);
  sched.global.clear();
  sched.global_size.store(0, relaxed);
  sched.newcomers.clear();
  sched.newcomers_size.store(0, relaxed);
  sched.newcomers_wait.store(false, relaxed);
  sched.turn_is_free.store(true, relaxed);
  sched.suspects.clear();
  sched.suspects_size.store(0, relaxed);
  sched.suspects_wait.store(false, relaxed);
  sched.unsorted = 0;
  sched.hog_kinds.fill(nullptr);
  sched.kind_on_trial = nullptr;
  sched.all_newcomers_wait = false;
  sched.suspects_at_once = true;
  sched.hogs.store(0, relaxed);
  sched.idle_p_list = nullptr;
  sched.idle_m_list = nullptr;
  sched.idle_ps.store(0, relaxed);
  sched.idle_ms = sched.idle_locked_ms = sched.live_ms = 0;
  sched.tied_ms = sched.untied_ms = 0;
  sched.spare_starts = false;
  sched.tie_waiters = {};
  sched.detached.clear();
  sched.detached_ms.store(0, relaxed);
  sched.dozer.store(nullptr, relaxed);
  sched.all_leave_to.store(nullptr, relaxed);
  sched.left_in_global.store(0, relaxed);
  sched.next_trial_of_all.store(0, relaxed);
  sched.help_wanted.store(false, relaxed);
  sched.out_of_threads.store(false, relaxed);
  sched.m_wanted.store(false, relaxed);
  sched.thread_refused.store(0, relaxed);
  if (sched.promiser.exchange(nullptr, relaxed)) sched.spinning.fetch_sub(1, relaxed);
  sched.burst_of.store(nullptr, relaxed);
  sched.sysmon_polls.store(0, relaxed);
  sched.watch_poller_until.store(0, relaxed);
  sched.short_bursts.store(0, relaxed);
  sched.short_bursts_before.store(short_bursts_at_first, relaxed);
  sched.poll_waiters.store(0, relaxed);
  sched.poll_until.store(0, relaxed);
  sched.last_poll.store(nanotime(), relaxed);
  sched.last_forced_tick.store(nanotime(), relaxed);
  sched.coarse_now.store(nanotime(), relaxed);
  sched.world_stopping.store(false, relaxed);
  sched.shutting_down.store(false, relaxed);
  goroutines_stop.store(false, relaxed);
  sched.main.store(main_state::not_begun, relaxed);
  sched.housekeeper = nullptr;
  sched.exit_note.clear();
  // The child of a fork() has none of its parent's threads: neither those left behind, nor those not joined yet, nor
  // late ones, nor plain ones.
  const pid_t here = ::getpid();
  if (std::exchange(sched.process, here) != here) {
    sched.left_behind.store(0, relaxed);
    sched.gone_ms.store(nullptr, relaxed);
    sched.spinning.store(0, relaxed);
    sched.foreign_poll_waiters.store(0, relaxed);
  }
}

// Waits until no M is left, or until `deadline`.
void wait_for_ms(nanos deadline) noexcept {
  for (;;) {
    sched.exit_note.clear();
    {
      lock_guard hold(sched.mutex);
      if (sched.live_ms == 0) return;
    }
    if (!sched.exit_note.sleep_until(deadline)) return;
  }
}

// Leaves m behind, which did not come back in time. True: m runs user code, and goes to sleep for good when it next
// enters the runtime. False: m is in the runtime at the moment, and will stop or leave the runtime by itself. The
// protocol is "revoke" (enter.hpp), with `abandoned` in the place of `revoked`.
bool leave_behind(M* m) noexcept {
  m->requests.fetch_or(request::abandoned, seq_cst);
  heavy_barrier();
  return m->depth.load(seq_cst) == 0;
}

}  // namespace

void abandon(G* g) noexcept {
  if (lsan_running()) show_to_leak_sanitizer(g);
  g->abandon();
}

bool is_over(std::uint64_t run) noexcept {
  // Acquire: if this is the next run()'s `running`, the number is the next one, too.
  return sched.shutting_down.load(relaxed) || !sched.running.load(acquire) || sched.run_number.load(relaxed) != run;
}

void throw_if_not_running_slow(const char* what) {
  if (this_m() && sched.running.load(relaxed)) return;
  leave_runtime(enter_without_locks());  // sleeps for good in a goroutine that an ended run() left behind
  refuse_beside_other_copy();
  throw std::logic_error(fmt::format("weft: {} without a running runtime: call it inside weft::run()", what));
}

void start_runtime(const scheduler_options& options) {
  if (long bytes = ::sysconf(_SC_PAGESIZE); bytes != page) {
    throw std::system_error(
        ENOTSUP, std::generic_category(),
        fmt::format("weft::run(): memory pages of {} bytes, but weft was built for those of {}", bytes, page));
  }
  if (started.exchange(true, acquire)) throw std::logic_error("weft::run(): a runtime is running already");
  begin_as_only_copy();
  try {
    if (int error = netpoll_init()) throw std::system_error(error, std::generic_category(), "weft::run(): epoll");
    sched.sysmon_pause.use(netpoll_alarm());
    static std::once_flag hooked;
    std::call_once(hooked, set_hooks);
    if (lsan_running()) {
      // The program may call exit() while goroutines are parked.
      static int registered = std::atexit(show_all_to_leak_sanitizer);
      (void)registered;
    }
    measure_ticks();
    reset();
    sched.options = options;
    if (options.hazard) watch_mutexes();
    sched.follow_cpus.store(options.follow_cpus, relaxed);
    pthread_sigmask(SIG_SETMASK, nullptr, &sched.signal_mask);
    sigdelset(&sched.signal_mask, SIGSEGV);  // while it is blocked, a stack overflow kills without a report
    limit_guards(options.guards);
    measure_stacks(options.measure_stacks);
    for (std::uint32_t i = 0; i < options.procs; ++i) make_p(i);
    begin_room_for_goroutines(options.stack_size);
    poll_set_deadlines_again(sched.all_ps[0].load(relaxed)->timers);
  } catch (...) {
    if (P* first = sched.all_ps[0].load(relaxed)) first->timers.clear();
    end_as_only_copy();
    started.store(false, release);
    throw;
  }
  may_be_alone_again();
  set_number_of_procs(options.procs);
  sched.timer_mask.set(0);  // for good, see idle_p_put
  lock_guard hold(sched.mutex);
  for (std::uint32_t i = options.procs; i-- > 0;) {
    P* p = sched.all_ps[i].load(relaxed);
    p->status.store(p_status::idle, relaxed);
    p->next_look.store(p->timers.size() != 0, relaxed);
    p->has_turn.store(false, relaxed);
    p->spoils_here.store(spoils::work, relaxed);
    idle_p_put(p);
  }
  let_threads_wait_for_io();
  // Both stores are under the lock, so that a thread that began a goroutine for this run() does not find the run() over
  // (is_over). Release: a thread that reads the number sees the room for goroutines.
  sched.run_number.fetch_add(1, release);
  sched.running.store(true, release);
}

void stop_runtime() noexcept {
  {
    lock_guard hold(sched.mutex);
    sched.shutting_down.store(true, seq_cst);  // from here on no other thread adds an M to all_ms, or takes one out
    goroutines_stop.store(true, relaxed);
    for (M* m : sched.all_ms) {
      m->requests.fetch_or(request::stop, release);
      m->parked.wakeup();
    }
  }
  // A thread that is stopping the world gives up now. One that has stopped it starts it again before it releases this
  // lock, so before this run() is over.
  sched.world.acquire_lock();
  netpoll_break();
  const nanos deadline = saturating_add(nanotime(), sched.options.shutdown_grace);
  wait_for_ms(deadline);

  while (M* m = sched.all_ms.front()) {
    while (!m->finished.load(acquire)) {
      if (leave_behind(m)) break;
      timespec pause{0, 50 * microsecond};
      nanosleep(&pause, nullptr);
    }
    lock_guard hold(sched.mutex);
    sched.all_ms.erase(m);
    if (!m->finished.load(acquire)) {
      pthread_detach(m->thread);  // the thread goes on using its M
      sched.left_behind.fetch_add(1, relaxed);
    } else if (m->thread != pthread_t{}) {
      note_gone(m);
    } else {
      delete m;
    }
  }

  // Threads that take longer are joined in the next run() of this process.
  join_ms(take_gone_ms(), std::max(deadline, nanotime() + time_to_end));

  {
    lock_guard hold(sched.mutex);
    sched.running.store(false, release);
    sched.idle_m_list = nullptr;
    sched.idle_p_list = nullptr;
  }
  sched.world.release_lock();
  send_threads_away_from_io();
  for_each_g(
      [](G* g, void*) {
        if (!is_unfinished(g)) return;
        if (as_good_as_ended(g)) {
          g->set_state_from_any(g_state::dead);
          recycle(sched.all_ps[0].load(relaxed), g);
          return;
        }
        abandon(g);
      },
      nullptr);
  std::uint64_t spawned = sched.foreign_spawned.load(relaxed), ended = 0;
  for (auto& slot : sched.all_ps) {
    P* p = slot.load(acquire);
    if (!p) break;
    p->timers.clear();
    bool inherit;
    while (p->runq.get(&inherit)) {}
    p->m.store(nullptr, relaxed);
    p->status.store(p_status::dead, relaxed);
    spawned += p->count.spawned.get();
    ended += p->count.ended.get();
  }
  empty_all_caches();
  sched.ended_before.store(spawned - ended, relaxed);
}

void let_next_run_begin() noexcept {
  end_as_only_copy();
  started.store(false, release);
}

}  // namespace weft::rt
