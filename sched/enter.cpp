#include "sched/enter.hpp"

#include "runtime/time_slice.hpp"
#include "sched/latency.hpp"
#include "sched/park.hpp"
#include "sched/preempt.hpp"
#include "sched/proc.hpp"
#include "sched/runqueues.hpp"
#include "sched/syscall.hpp"
#include "sched/threads.hpp"
#include "sched/turns.hpp"

namespace weft::rt {

namespace {

[[noreturn]] void sleep_for_good(M* m) noexcept {
  // The run() that this thread belonged to returns, or has returned. The goroutine keeps its stack, and the thread
  // sleeps. It counts as outside the runtime from here on, as stop_runtime waits for that when it leaves an M behind.
  m->depth.store(0, release);
  for (;;) {
    static constinit atomic<std::uint32_t> never{0};
    futex_wait(&never, 0);
  }
}

void queue_globally(G* g, void*) noexcept {
  {
    lock_guard hold(sched.mutex);
    // Set only here, where everything that a dump reads of the goroutine is complete (G::set_state). The state was
    // running, syscall or runnable.
    bool stays = sched.shutting_down.load(relaxed);
    g->set_state_from_any(stays ? g_state::waiting : g_state::runnable);
    if (stays) return;
    time_one_in_64(g, sched.came_back.fetch_add(1, relaxed));
    global_put(g);  // A1
  }
  wake_for_work(nullptr);  // A2: a P may have gone idle since the M found none
}

// Called when the P was taken while the goroutine was in user code, or when a taker gave up: takes an idle P, or else
// queues the goroutine.
M* regain_p(M* m) noexcept {
  P* p = nullptr;
  {
    lock_guard hold(sched.mutex);
    m->requests.fetch_and(~request::revoked, relaxed);
    if (m->p.load(relaxed)) return m;  // the taker gave up
    // A request to yield was made for the sake of the P that was taken.
    m->requests.fetch_and(~request::yield, relaxed);
    // Once the run() ends no thread takes an M out of the list of detached Ms: its neighbours there may be gone.
    if (!sched.shutting_down.load(relaxed)) {
      forget_detached(m);
      ++m->regained;
      p = idle_p_to_go_on(m);
      if (p) acquirep(m, p);
    }
  }
  use_short_slices(0);  // not before: sysmon may give the thread other slices as long as the M is detached
  return p ? m : give_way(m);
}

// The stop that m was asked for is over. Another one may have begun by now; it raises the bit under the lock, and must
// not lose it.
void take_back_stop(M* m) noexcept {
  lock_guard hold(sched.mutex);
  if (sched.world_stopping.load(relaxed) || sched.shutting_down.load(relaxed)) return;
  m->requests.fetch_and(~request::stop, relaxed);
}

}  // namespace

M* leave_thread(M* m) noexcept {
  return suspend(
      m,
      [](G* g, void*) {
        g->set_state(g_state::running, g_state::runnable);
        if (!pass_on(static_cast<M*>(g->thread), g)) queue_globally(g, nullptr);
      },
      nullptr);
}

M* give_way(M* m) noexcept { return suspend(m, queue_globally, nullptr); }

// Answers the requests made of an M (request, m.hpp). A thread that makes a request raises its bit after it has written
// what the request is about. The word is read with acquire here, and what it is about is read after that.
//
//     yield        relaxed     stands for itself
//     revoked      seq_cst     T1 of "revoke" (preempt.cpp)
//     stop         release     after world_stopping, or after shutting_down
//     abandoned    seq_cst     T1 of the same protocol (leave_behind, lifecycle.cpp)
//     pinned       seq_cst     N1 (pin.cpp); answered between goroutines (find.cpp)
//     in_syscall   relaxed     raised by the M itself
//     hazard       -           raised before the M's thread begins
//
//     An entry that misses a bit (E3 is relaxed, enter.hpp) leaves it to the next entry. If that is not soon enough,
//     the thread that makes the request either has a heavy barrier ("revoke"), or looks again: stop_the_world takes the
//     Ps of Ms that do not come by (world.cpp). A bit whose reason has passed is taken back here.
M* enter_slow(M* m) noexcept {
  for (;;) {
    std::uint32_t r = m->requests.load(acquire);
    if (r & request::abandoned) sleep_for_good(m);
    const bool ends = sched.shutting_down.load(acquire);
    // A goroutine in no_preemption, which keeps its P, goes on as long as the grace lasts: stop_runtime waits for it.
    if (WEFT_UNLIKELY(ends) && (m->g->no_preemption == 0 || r & request::in_syscall)) return give_way(m);  // for good
    // in_syscall comes before `revoked`: a taker may have raised `revoked` while the M was in its system call, without
    // a P to take. That taker gives up, or takes the P that the M gets back here.
    if (r & request::in_syscall) {
      M* const before = m;
      m = finish_syscall(m);
      // The goroutine might come back on another M, so it always does.
      if (WEFT_UNLIKELY(r & request::hazard) && m == before) m = give_way(m);
      continue;
    }
    if (r & request::revoked) {
      m = regain_p(m);
      continue;
    }
    if (r & request::stop && !ends && !sched.world_stopping.load(acquire)) {
      take_back_stop(m);
      continue;
    }
    until_all_are_aware(m);
    if (m->g->no_preemption != 0) return m;  // the end of no_preemption comes by here again
    // The world stops: this M gives its P up between goroutines. The goroutine goes on when the world does.
    if (r & request::stop) return give_way(m);
    if (r & request::yield) {
      m->requests.fetch_and(~request::yield, relaxed);
      sched.preemptions_taken.fetch_add(1, relaxed);
      note_slice_used_up(m->p.load(relaxed));
      return give_way(m);
    }
    return m;
  }
}

}  // namespace weft::rt
