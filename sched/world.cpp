// Stopping the world: nobody but the thread that stopped it holds a P, so that goroutines can be looked at, and the
// number of Ps can change.
//
// A P stops in one of four ways:
//   - it idles;
//   - its M is in a system call: one CAS takes the P;
//   - its M runs user code: the M is detached, and the goroutine runs on until it next enters the runtime;
//   - its M is in the runtime: it comes by its scheduler's loop, or leaves for user code and is detached then.
// So the wait is short, with two exceptions: a goroutine in weft::no_preemption keeps its P until that ends, and an M
// in which the user's code blocks inside the runtime (in a value's move) keeps its P. sysmon does not wait for these:
// it gives up after patience_of_sysmon, and the Ps that have stopped go on.
//
// When a run() ends, Ms leave, and not all Ps ever stop. A thread that is stopping the world looks for that under
// sched.mutex, each time it looks at the Ps, and gives up (too_late). A thread that has stopped the world holds
// sched.world, for which stop_runtime waits; so it starts the world again before the next run() can begin.

#include "sched/world.hpp"

#include "sched/alone.hpp"
#include "sched/newcomers.hpp"
#include "sched/park.hpp"
#include "sched/preempt.hpp"
#include "sched/proc.hpp"
#include "sched/runqueues.hpp"
#include "sched/spawn.hpp"
#include "sched/syscall.hpp"
#include "sched/threads.hpp"

#include <memory>
#include <utility>

namespace weft::rt {

namespace {

constexpr nanos look_again_every = 50 * microsecond;

// Called under sched.mutex. Stops the Ps that can be stopped now. True: all Ps but `own` are stopped.
bool stop_what_stands_still(P* own) noexcept {
  while (P* p = idle_p_get()) p->status.store(p_status::stopped, relaxed);
  bool all = true;
  for (std::uint32_t i = 0; i < sched.procs.load(relaxed); ++i) {
    P* p = sched.all_ps[i].load(relaxed);
    p_status s = p->status.load(acquire);
    if (p == own || s == p_status::stopped) continue;
    if ((s == p_status::syscall && retake_syscall(p)) || (s == p_status::running && detach_running(p))) {
      p->status.store(p_status::stopped, relaxed);
    } else {
      all = false;
    }
  }
  return all;
}

// Called while the world is stopped. Moves p's timers to `heir`, and its goroutines to the global queue.
void retire(P* p, P* heir) {
  heir->timers.take_all(p->timers);
  heir->next_look.store(1, relaxed);  // the dispatcher looks at the new timers at once
  empty_caches(p);
  sched.timer_mask.set(heir->id);
  sched.timer_mask.clear(p->id);
  lock_guard hold(sched.mutex);
  if (take_turn_away(p)) sched.turn_is_free.store(true, seq_cst);  // start_the_world calls wakep()
  global_put_queue_of(p);
  p->status.store(p_status::dead, relaxed);
}

// When the run() ends, Ms leave, and not all of their Ps ever stop.
bool run_ends() noexcept { return sched.shutting_down.load(relaxed) || !sched.running.load(relaxed); }

}  // namespace

P* make_p(std::uint32_t id) {
  if (P* p = sched.all_ps[id].load(relaxed)) return p;
  auto made = std::make_unique<P>(id);
  P* there = nullptr;  // another thread may make the same P meanwhile
  if (!sched.all_ps[id].compare_exchange_strong(there, made.get(), acq_rel, acquire)) return there;
  return made.release();
}

bool stop_the_world(nanos deadline) noexcept {
  M* m = this_m();
  P* own = p_of(m);
  lock_guard hold(sched.mutex);
  const std::uint64_t run = sched.run_number.load(relaxed);
  auto too_late = [&] { return deadline == forever && (run_ends() || sched.run_number.load(relaxed) != run); };
  if (too_late()) return false;
  sched.world_stopping.store(true, release);
  for (M* other : sched.all_ms) {
    // release: an M that sees the request sees world_stopping (enter_slow).
    if (other != m) other->requests.fetch_or(request::stop, release);
  }
  if (own) own->status.store(p_status::stopped, relaxed);
  while (!stop_what_stands_still(own)) {
    says_it_is_aware(m);  // the Ms that we wait for may be waiting for that
    nanos now = nanotime();
    if (now >= deadline) return false;
    sched.mutex.release_lock();
    sched.stop_note.sleep_until(now + look_again_every);
    sched.stop_note.clear();
    sched.mutex.acquire_lock();
    if (too_late()) return false;
  }
  return true;
}

void stop_for_the_world(M* m) noexcept {
  {
    lock_guard hold(sched.mutex);
    if (!sched.world_stopping.load(relaxed)) return;
    if (m->spinning.load(relaxed)) {
      m->spinning.store(false, relaxed);
      sched.spinning.fetch_sub(1, seq_cst);
    }
    releasep(m)->status.store(p_status::stopped, relaxed);
    sched.stop_note.wakeup();
  }
  stopm(m);
}

void start_the_world() noexcept {
  M* m = this_m();
  P* own = p_of(m);
  P* with_work = nullptr;
  {
    lock_guard hold(sched.mutex);
    sched.world_stopping.store(false, release);
    for (M* other : sched.all_ms) other->requests.fetch_and(~request::stop, relaxed);
    if (own) own->status.store(p_status::running, relaxed);
    wake_sysmon();  // sysmon may have gone into a deep sleep while the world was stopped
    for (std::uint32_t i = 0; i < sched.procs.load(relaxed); ++i) {
      P* p = sched.all_ps[i].load(relaxed);
      const p_status s = p->status.load(relaxed);
      if (p != own && s != p_status::stopped && s != p_status::dead) continue;  // not stopped: the stop was given up
      // The goroutine that had the turn may have lost this P to the stop. Nobody watches it, so the turn comes back.
      if (take_turn_away(p)) sched.turn_is_free.store(true, seq_cst);
      if (p == own) continue;
      p->status.store(p_status::idle, relaxed);
      if (p->runq.empty()) {
        idle_p_put(p);
      } else {
        p->next_idle = with_work;
        with_work = p;
      }
    }
  }
  while (with_work) startm(std::exchange(with_work, std::exchange(with_work->next_idle, nullptr)), false);
  // Some M must look for the timers of Ps that idle now, for detached goroutines that come back to queue, and at the
  // global queue and the newcomers.
  wakep();
}

bool acquire_world(M** m, nanos deadline) noexcept {
  while (!sched.world.try_acquire_lock()) {
    if (nanotime() >= deadline) return false;
    // The thread that stops the world waits for this P, too.
    if (*m) {
      *m = yield_now(*m);
    } else {
      timespec pause{0, look_again_every};
      nanosleep(&pause, nullptr);
    }
  }
  if (stop_the_world(deadline)) return true;
  if (deadline != forever) {
    release_world();
    return false;
  }
  {
    lock_guard hold(sched.mutex);
    sched.world_stopping.store(false, release);
    if (*m) (*m)->p.load(relaxed)->status.store(p_status::running, relaxed);
  }
  sched.world.release_lock();
  if (*m) *m = give_way(*m);  // for good
  return false;
}

void release_world() noexcept {
  start_the_world();
  sched.world.release_lock();
}

void set_number_of_procs(std::uint32_t n) noexcept {
  sched.procs.store(n, release);
  begin_alone(n);
}

std::uint32_t set_procs(std::uint32_t n, who_sets by) {
  M* m = enter_without_locks();  // sysmon also calls this function, and must not count as a plain thread
  std::uint32_t old = sched.procs.load(relaxed);
  if (!acquire_world(&m, by == who_sets::sysmon ? nanotime() + patience_of_sysmon : forever)) return old;
  // The program clears follow_cpus before it calls this function.
  if (by == who_sets::sysmon && !sched.follow_cpus.load(relaxed)) {
    release_world();
    return old;
  }
  old = sched.procs.load(relaxed);
  P* own = p_of(m);
  if (own && own->id >= n) {
    // This goroutine goes on with a P that stays.
    P* heir = sched.all_ps[0].load(relaxed);
    own->m.store(nullptr, relaxed);
    heir->m.store(m, relaxed);
    heir->began = {};
    m->p.store(heir, relaxed);
    own = heir;
  }
  P* heir = own ? own : sched.all_ps[0].load(relaxed);
  std::uint32_t kept = n;
  bool failed = false;
  try {
    for (std::uint32_t i = old; i < n; ++i) make_p(i);
    make_room_for_goroutines();  // the caches of the new Ps need some
    for (std::uint32_t i = old; i > n; --i) retire(sched.all_ps[i - 1].load(relaxed), heir);
  } catch (const std::bad_alloc&) {
    kept = old;  // all Ps stay; the queues of some may have been moved to the global queue already
    failed = true;
  }
  set_number_of_procs(kept);
  release_world();
  leave_runtime(m);
  if (failed) throw std::bad_alloc();
  return old;
}

}  // namespace weft::rt
