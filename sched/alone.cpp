// "alone": a P's queue, and the locks of goroutines, without a locked instruction, while all other Ps idle.
//
// A goroutine_lock is taken inside the runtime, by an M that holds a P, and given back before the M parts with the P,
// at the latest by the commit step of a park. So while one P runs, all its holders come one after the other, and see
// each other's writes as they see those of whatever belongs to the P. Taking it may be a load and a store. The P's
// queue has no thieves either.
//
// The only P of a program is alone from the start. One of several is if it finds, on two looks in a row, 1024
// dispatches apart, that all others idle and none was taken in between. It ends when one is taken from the idle list,
// be it the same again. The other takers of goroutine_locks are plain threads: the first one to enter the runtime ends
// that part of it, for the rest of the process.
//
//     the P's M                      who takes a P; a plain thread, the first time
//     E1  depth = 1                  C1  the flags = false
//     E2  light barrier              C3  heavy barrier
//     L1  a flag is true? then       C4  wait for an M between L1 and L3
//     L2    word free?               C5  use the P; plain thread: alone_ended = plain_thread_came
//     L3    word = held
//
//     B1  all others idle: the flags = true, unless, for locks, a plain thread has come
//
//   C1 and B1 are under sched.mutex. Who takes a P is on the idle list no more when he gives the mutex back, so there
//   is no B1 until he idles again; and once a plain thread's C1 has been, locks are never taken plainly again, so no
//   plain thread, which takes its first lock after C5, reads another answer. The M that B1 is about makes it itself;
//   those that held Ps before have given them up under the mutex, and it has seen what they did.
//
//   After L3 the word says that the lock is held, and whoever comes then waits for it as for any other; a queue's owner
//   has used it plainly then, and does not for the next step. So what C4 has to wait for is an M that L1 told to go on
//   plainly and that has not got to L3 yet ("unaware"). It looks at depth as "revoke" does (enter.hpp): if that is 0,
//   E1 was not visible at C3, so L1 comes after it and reads false. If it is not, the M is past L3 when it is seen
//   outside, or without the P, or when it has dispatched a goroutine since; then, too, a heavy barrier makes its stores
//   visible. One of these comes about, also if its goroutine never gives the P away (no_preemption). So C4 looks again
//   and again. It may miss that the M was outside in between, and costs nobody else anything. An M in a value's move or
//   destructor is outside as well, for this purpose (outside_at): that may block, and wait for who waits at C4.
//
//   Whoever waits at C4 holds no lock that the M may want: a P is passed on with the mutex held, and often by somebody
//   with other locks, so the wait is its next user's, who has none. And the M does not wait for him: where it waits for
//   other Ms, in the runtime and without a dispatch, as it stops the world, it says that it is aware.
//
//   Without membarrier there would have to be a fence at each L1, so then nobody is alone, but for the only P's queue.
//
//   Plain threads that enter meanwhile wait likewise (`ending`), until C5. The thread in run() is one that comes when
//   main has ended, for the rest of this run() only: the next one begins when it takes no such lock any more.
//
// append-check-wake (proc.cpp) rests on A1 being a full barrier before A2. Of a P that is alone it is none. All that
// can go wrong then is between it and those who hold no P: an M that spun, or dozes, or sysmon, which takes a promise
// over.
//
//     who is alone                                  an M without a P
//     A1  append it (plain)                         S2  --spinning; or D1, dozer = itself (find.cpp)
//         light barrier                             S2b alone? then a heavy barrier
//     A2  spinning? the dozer?                      S3  look at every queue; or D2
//
//   The asymmetric Dekker: one of A2 and S3 sees the other side. S2b asks alone_p, which stays until nobody is unaware
//   any more. So if it says that nobody is alone, either B1, which is seq_cst, comes later than S2, and its owner's A2
//   sees that; or what was made ready plainly is visible.
//
// Starting a goroutine takes no goroutine_lock, and so a plain thread that only does that, as run() does for main, does
// not count (sched/spawn.cpp).

#include "sched/alone.hpp"

#include "runtime/asymmetric.hpp"
#include "runtime/thread.hpp"
#include "sched/enter.hpp"
#include "sched/scheduler.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

namespace weft::rt {

namespace {

constexpr int looks_in_a_row = 64;
constexpr long pause_between_looks = 20 * microsecond;

constinit lock ending{lock_rank::stop_the_world};

bool is_only_p() noexcept { return sched.procs.load(relaxed) == 1; }

// --- under sched.mutex

void all_are_aware() noexcept {
  sched.somebody_unaware.store(false, relaxed);
  P* p = sched.alone_p.load(relaxed);
  // release: who reads this sees what was made ready (S2b). A plain thread ends it for locks only.
  if (p && !p->runq.unshared()) sched.alone_p.store(nullptr, release);
}

void begin(P* p) noexcept {
  sched.somebody_unaware.store(false, relaxed);
  p->runq.set_unshared(true);
  alone.store(alone_ended.load(relaxed) == alone_ends::not_yet && !barriers_are_symmetric, relaxed);
  sched.alone_p.store(p, seq_cst);  // B1
}

// C1
void end(P* p) noexcept {
  alone.store(false, relaxed);
  p->runq.set_unshared(false);
}

bool is_outside(const M* m) noexcept {
  const std::uint32_t outside = m->outside_at.load(acquire);  // first: it may leave that code meanwhile, after C3
  return m->depth.load(seq_cst) == outside;
}

// After C1: C3, and who is to be waited for. p's owner itself is between two uses.
void look_who_is_unaware(P* p) noexcept {
  if (p == p_of(this_m())) return all_are_aware();
  heavy_barrier();  // C3
  // acquire: an M that has given its P up, or is outside the runtime, used it before.
  const M* m = p->m.load(acquire);
  if (!m || is_outside(m)) return all_are_aware();
  sched.unaware = {p, m, dispatches(p)};
  sched.somebody_unaware.store(true, relaxed);
}

bool is_still_unaware() noexcept {
  const auto& [p, m, dispatched] = sched.unaware;
  if (p->m.load(acquire) != m || is_outside(m)) return false;
  if (dispatches(p) == dispatched) return true;
  heavy_barrier();
  return false;
}

}  // namespace

void others_come() noexcept {
  sched.ps_taken.store(sched.ps_taken.load(relaxed) + 1, relaxed);
  P* p = sched.alone_p.load(relaxed);
  if (!p || is_only_p() || !p->runq.unshared()) return;
  end(p);
  look_who_is_unaware(p);
}

void says_it_is_aware(const M* m) noexcept {
  if (m && sched.somebody_unaware.load(relaxed) && sched.unaware.m == m) all_are_aware();
}

// ---

namespace {

WEFT_NOINLINE void wait_for_who_is_unaware(const M* m) noexcept {
  errno_stays keep;  // of a goroutine that comes back from a call, perhaps
  for (int looks = 0;; ++looks) {
    {
      lock_guard hold(sched.mutex);
      says_it_is_aware(m);  // it had that P itself
      if (!sched.somebody_unaware.load(relaxed)) return;
      if (!is_still_unaware()) return all_are_aware();
      if (m && sched.shutting_down.load(relaxed)) return;
    }
    if (looks < looks_in_a_row) {
      cpu_relax();
    } else {
      timespec pause{0, pause_between_looks};
      nanosleep(&pause, nullptr);
    }
  }
}

}  // namespace

void until_all_are_aware(const M* m) noexcept {
  if (WEFT_UNLIKELY(sched.somebody_unaware.load(relaxed))) wait_for_who_is_unaware(m);
}

void look_whether_alone(P* p) noexcept {
  p->alone_look_at = dispatches(p) + others_every;
  if (barriers_are_symmetric) return;
  const std::uint64_t taken = sched.ps_taken.load(relaxed);
  if (std::exchange(p->taken_before, taken) != taken || p->runq.unshared()) return;
  auto all_others_idle = [] { return sched.idle_ps.load(relaxed) + 1 == sched.procs.load(relaxed); };
  if (!all_others_idle()) return;
  lock_guard hold(sched.mutex);
  if (all_others_idle() && !sched.world_stopping.load(relaxed)) begin(p);
}

void barrier_to_who_is_alone() noexcept {
  if (sched.alone_p.load(seq_cst) && !is_only_p()) heavy_barrier();
}

namespace {

void end_for_locks(alone_ends when) noexcept {
  lock_guard hold(ending);
  {
    lock_guard hold_all(sched.mutex);
    alone_ended.store(std::max(alone_ended.load(relaxed), when), relaxed);
    if (alone.load(relaxed)) {
      alone.store(false, relaxed);  // C1
      look_who_is_unaware(sched.alone_p.load(relaxed));
    }
  }
  wait_for_who_is_unaware(nullptr);  // C4
}

}  // namespace

void may_be_alone_again() noexcept {
  lock_guard hold(sched.mutex);
  if (alone_ended.load(relaxed) == alone_ends::with_this_run) alone_ended.store(alone_ends::not_yet, relaxed);
}

void begin_alone(std::uint32_t procs) noexcept {
  lock_guard hold(sched.mutex);
  if (P* p = sched.alone_p.load(relaxed)) end(p);
  all_are_aware();
  if (procs == 1) begin(sched.all_ps[0].load(relaxed));
}

void end_alone() noexcept { end_for_locks(alone_ends::with_this_run); }

void plain_thread_comes() noexcept {
  end_for_locks(alone_ends::plain_thread_comes);
  lock_guard hold(sched.mutex);
  alone_ended.store(alone_ends::plain_thread_came, release);  // C5
}

}  // namespace weft::rt
