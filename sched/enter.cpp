#include "sched/enter.hpp"

#include "runtime/time_slice.hpp"
#include "sched/find.hpp"
#include "sched/latency.hpp"
#include "sched/park.hpp"
#include "sched/preempt.hpp"
#include "sched/proc.hpp"
#include "sched/runqueues.hpp"
#include "sched/syscall.hpp"
#include "sched/threads.hpp"

#include <utility>

namespace weft::rt {

namespace {

[[noreturn]] void sleep_for_good(M* m) noexcept {
  // The run() this thread belonged to returns, or has returned. Its goroutine keeps its stack, and the thread sleeps.
  // It is out of the runtime from here on: whoever leaves it behind waits for that.
  m->depth.store(0, release);
  for (;;) {
    static constinit atomic<std::uint32_t> never{0};
    futex_wait(&never, 0);
  }
}

void queue_globally(G* g, void*) noexcept {
  {
    lock_guard hold(sched.mutex);
    // Only now, when what a dump reads of it is complete (G::set_state). From running, syscall or runnable.
    bool stays = sched.shutting_down.load(relaxed);
    g->set_state_from_any(stays ? g_state::waiting : g_state::runnable);
    if (stays) return;
    time_one_in_64(g, sched.came_back.fetch_add(1, relaxed));
    global_put(g);  // A1
  }
  wake_for_work(nullptr);  // A2: a P may have gone idle since the goroutine found none
}

// The P was taken while the goroutine was in user code: get one, or queue.
M* regain_p(M* m) noexcept {
  P* p = nullptr;
  {
    lock_guard hold(sched.mutex);
    m->requests.fetch_and(~request::revoked, relaxed);
    if (m->p.load(relaxed)) return m;  // the taker gave up
    // That asked for the P that was taken.
    m->requests.fetch_and(~request::yield, relaxed);
    // Once the run() ends nobody takes an M out of the list: its neighbours there may be gone.
    if (!sched.shutting_down.load(relaxed)) {
      forget_detached(m);
      ++m->regained;
      p = idle_p_to_go_on(m);
      if (p) acquirep(m, p);
    }
  }
  use_short_slices(0);  // only now: sysmon gives it others as long as it is detached
  return p ? m : give_way(m);
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

// What is asked of an M (request, m.hpp). Others raise a bit after they have written what it is about; here the word is
// read with acquire, and that after it.
//
//     yield        relaxed     stands for itself
//     revoked      seq_cst     T1 of "revoke" (preempt.cpp)
//     stop         release     after world_stopping, or after shutting_down
//     abandoned    seq_cst     T1 of the same protocol (leave_behind, lifecycle.cpp)
//     pinned       seq_cst     N1 (pin.cpp); taken between goroutines (find.cpp)
//     in_syscall   relaxed     by the M itself
//     hazard       -           before the M's thread begins
//
//     An entry that misses a bit (E3 is relaxed, enter.hpp) finds it at the next one. Where that is not soon enough
//     there is a heavy barrier ("revoke"), or whoever asks looks again: to stop the world takes the Ps of those that do
//     not come (world.cpp). A bit whose reason has passed is taken back here.
M* enter_slow(M* m) noexcept {
  for (;;) {
    std::uint32_t r = m->requests.load(acquire);
    if (r & request::abandoned) sleep_for_good(m);
    if (WEFT_UNLIKELY(sched.shutting_down.load(acquire))) return give_way(m);  // for good
    // Before `revoked`: a taker may have raised that while the M was in its system call, without a P to take. It then
    // gives up, or takes the P that is regained here.
    if (r & request::in_syscall) {
      m = finish_syscall(m);
      if (WEFT_UNLIKELY(r & request::hazard)) m = give_way(m);  // it may come back on another M, so it does
      continue;
    }
    if (r & request::revoked) {
      m = regain_p(m);
      continue;
    }
    if (r & request::stop && !sched.world_stopping.load(acquire)) {
      m->requests.fetch_and(~request::stop, relaxed);
      continue;
    }
    until_all_are_aware(m);
    if (m->g->no_preemption != 0) return m;  // the end of that comes by here again
    // The world stops: between goroutines this M will give its P up. When the world goes on, so do we.
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
