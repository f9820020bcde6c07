// "alone": a lock of goroutines without a locked instruction, while there is one P.
//
// A goroutine_lock is taken inside the runtime, by an M that holds a P, and given back before the M parts with the P,
// at the latest by the commit step of a park. So with one P all its holders come one after the other, and see each
// other's writes as they see those of whatever belongs to the P. Taking it may be a load and a store.
//
// The others who take such locks are plain threads. The first one to enter the runtime ends that, for the rest of the
// process; and so does who sets the number of Ps to more than one, while the world is stopped.
//
//     an M                           a plain thread, the first time            who stops the world for one P
//     E1  depth = 1                  C1  plain_threads_seen = coming           S1  alone = true
//     E2  light barrier              C2  alone? then                           S2  plain_threads_seen is not none?
//     L1  alone? then                C3    alone = false                           then alone = false
//     L2    word free?               C4    heavy barrier
//     L3    word = held              C5    wait for an M between L1 and L3
//                                    C6  plain_threads_seen = came
//
//   C1 and C2, S1 and S2 are seq_cst: the thread sees that weft is alone, or that one sees that a thread has come, or
//   both. Nobody takes a lock between S1 and S2, as the world stands still.
//
//   After L3 the word says that the lock is held, and whoever comes then waits for it as for any other. So what C5 has
//   to wait for is an M that L1 told to go on plainly and that has not got to L3 yet. It looks at depth as "revoke"
//   does (enter.hpp): if that is 0, E1 was not visible at C4, so L1 comes after it and reads false. If it is not, the M
//   is past L3 when it is seen outside, or without the P, or when it has dispatched a goroutine since; then, too, a
//   heavy barrier makes its word visible. One of these comes about, also if its goroutine never gives the P away
//   (no_preemption). So C5 looks again and again, 20 µs apart. It may miss that the M was outside in between, and costs
//   nobody else anything.
//
//   Other plain threads that enter meanwhile wait likewise (`ending`), until C6.
//
// Starting a goroutine takes no such lock, and so a plain thread that only does that, as run() does for main, does not
// count (sched/spawn.cpp).

#include "sched/alone.hpp"

#include "runtime/asymmetric.hpp"
#include "sched/scheduler.hpp"

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
      if (!m || m->depth.load(seq_cst) == 0) return;
      if (!first) {
        first = m;
        from = dispatches(p);
      }
      if (m != first) return;
      if (dispatches(p) != from) break;
    }
    timespec pause{0, pause_between_looks};
    nanosleep(&pause, nullptr);
  }
  heavy_barrier();
}

}  // namespace

void begin_alone(std::uint32_t procs) noexcept {
  alone.store(procs == 1, seq_cst);                                                          // S1
  if (plain_threads_seen.load(seq_cst) != plain_threads::none) alone.store(false, seq_cst);  // S2
}

void end_alone() noexcept {
  lock_guard hold(ending);
  if (!alone.load(seq_cst)) return;  // C2
  alone.store(false, seq_cst);       // C3
  heavy_barrier();                   // C4
  wait_for_who_takes_one();          // C5
}

void plain_thread_comes() noexcept {
  plain_threads_seen.store(plain_threads::coming, seq_cst);  // C1
  end_alone();
  plain_threads_seen.store(plain_threads::came, release);  // C6
}

}  // namespace weft::rt
