// "alone": a lock of goroutines without a locked instruction, while there is one P.
//
// A goroutine_lock is taken inside the runtime, by an M that holds a P, and given back before the M parts with the P,
// at the latest by the commit step of a park. So with one P all its holders come one after the other, and see each
// other's writes as they see those of whatever belongs to the P. Taking it may be a load and a store.
//
// The others who take such locks are plain threads. The first one to enter the runtime ends that, for the rest of the
// process; and so does who sets the number of Ps to more than one, while the world is stopped.
//
//     an M                           a plain thread, the first time            who stops the world
//     E1  depth = 1                  C1  alone = false, for good               S1  alone = there is one P,
//     E2  light barrier              C2  it was true? then                         unless C1 came first
//     L1  alone? then                C3    heavy barrier
//     L2    word free?               C4    wait for an M between L1 and L3
//     L3    word = held              C5  alone_ended = plain_thread_came
//
//   C1 and S1 are under sched.mutex: once C1 has been, alone is never true again, and no plain thread, which takes its
//   first lock after C5, reads another answer. The Ms read what S1 decides when the world goes on.
//
//   After L3 the word says that the lock is held, and whoever comes then waits for it as for any other. So what C4 has
//   to wait for is an M that L1 told to go on plainly and that has not got to L3 yet. It looks at depth as "revoke"
//   does (enter.hpp): if that is 0, E1 was not visible at C3, so L1 comes after it and reads false. If it is not, the M
//   is past L3 when it is seen outside, or without the P, or when it has dispatched a goroutine since; then, too, a
//   heavy barrier makes its word visible. One of these comes about, also if its goroutine never gives the P away
//   (no_preemption). So C4 looks again and again, 20 µs apart. It may miss that the M was outside in between, and costs
//   nobody else anything.
//
//   Other plain threads that enter meanwhile wait likewise (`ending`), until C5. The thread in run() is one that comes
//   when main has ended, for the rest of this run() only: the next one begins when it takes no such lock any more.
//
// Starting a goroutine takes no such lock, and so a plain thread that only does that, as run() does for main, does not
// count (sched/spawn.cpp).

#include "sched/alone.hpp"

#include "runtime/asymmetric.hpp"
#include "sched/scheduler.hpp"

#include <algorithm>
#include <ctime>

namespace weft::rt {

namespace {

constexpr long pause_between_looks = 20 * microsecond;

constinit lock ending{lock_rank::stop_the_world};

// Until no M is about to take a lock plainly.
void wait_for_who_takes_one() noexcept {
  const M* first = nullptr;
  std::uint64_t from = 0;
  for (;;) {
    {
      lock_guard hold(sched.mutex);  // else the M may be gone
      const P* p = sched.all_ps[0].load(relaxed);
      const M* m = p->m.load(relaxed);
      if (!m) break;
      if (m->depth.load(seq_cst) == 0) return;
      if (!first) {
        first = m;
        from = dispatches(p);
      }
      if (m != first || dispatches(p) != from) break;
    }
    timespec pause{0, pause_between_looks};
    nanosleep(&pause, nullptr);
  }
  heavy_barrier();
}

void end_alone_until(alone_ends when) noexcept {
  lock_guard hold(ending);
  bool was;
  {
    lock_guard hold_all(sched.mutex);
    was = alone.load(relaxed);
    alone.store(false, relaxed);  // C1
    alone_ended.store(std::max(alone_ended.load(relaxed), when), relaxed);
  }
  if (!was) return;          // C2
  heavy_barrier();           // C3
  wait_for_who_takes_one();  // C4
}

}  // namespace

void may_be_alone_again() noexcept {
  lock_guard hold(sched.mutex);
  if (alone_ended.load(relaxed) == alone_ends::with_this_run) alone_ended.store(alone_ends::not_yet, relaxed);
}

void begin_alone(std::uint32_t procs) noexcept {
  lock_guard hold(sched.mutex);
  alone.store(procs == 1 && alone_ended.load(relaxed) == alone_ends::not_yet, relaxed);  // S1
}

void end_alone() noexcept { end_alone_until(alone_ends::with_this_run); }

void plain_thread_comes() noexcept {
  end_alone_until(alone_ends::plain_thread_comes);
  lock_guard hold(sched.mutex);
  alone_ended.store(alone_ends::plain_thread_came, release);  // C5
}

}  // namespace weft::rt
