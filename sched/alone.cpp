// "alone": while all other Ps idle, a P uses its queue, and takes the locks of goroutines, without a locked
// instruction.
//
// A goroutine_lock is taken inside the runtime, by an M that holds a P, and given back before the M parts with the P,
// at the latest by the commit step of a park. So while only one P runs, the holders of such a lock come one after the
// other, and each sees the writes of the one before as it sees those to anything else that belongs to the P. Taking the
// lock may then be a plain load and a plain store. The P's queue has no thieves then either.
//
// The only P of a program is alone from the start. One of several Ps becomes alone if two looks in a row, 1024
// dispatches apart, find that all others idle and that none was taken in between. It is no longer alone when a P is
// taken from the idle list, even if that is the same P as before. Plain threads take goroutine_locks, too: the first
// one that enters the runtime ends the plain use of the locks (not that of the queue) for the rest of the process.
//
//     the P's M                      a thread that takes a P; a plain thread, the first time
//     E1  depth = 1                  C1  the flags = false
//     E2  light barrier              C2  heavy barrier
//     L1  a flag is true? then       C3  wait for an M between L1 and L3
//     L2    word free?               C4  use the P; plain thread: alone_ended = plain_thread_came
//     L3    word = held
//
//     B1  all others idle: the flags = true, unless, for locks, a plain thread has come
//
//   C1 and B1 are under sched.mutex. A P that is taken has left the idle list by the time the mutex is released, so
//   there is no B1 until that P idles again. Once a plain thread has done C1, B1 never sets the flag for locks again;
//   so a plain thread, which takes its first lock after C4, never reads true. The M that becomes alone does B1 itself.
//   The Ms that held the other Ps before have given them up under the mutex, so it has seen what they did.
//
//   After L3 the word says that the lock is held, and a later taker waits for it as for any other lock. (The owner of a
//   queue has made its plain access by then, and reads the flag again for the next one.) So C3 has to wait only for an
//   M that read true at L1 and has not reached L3 yet ("unaware"). C3 reads depth as "revoke" does (enter.hpp). If
//   depth is 0, E1 was not visible at C2, so L1 comes after C2 and reads false. If not, the M is past L3 once it is
//   seen outside the runtime, or without the P, or once it has dispatched another goroutine; in this last case, too, a
//   heavy barrier makes its stores visible. One of these happens in the end, even if the goroutine never gives the P
//   away (no_preemption). So C3 looks again and again. It may miss that the M was outside in between, but its wait
//   costs nobody else anything. An M that runs the move or the destructor of a channel's value also counts as outside
//   here (outside_at): that code may block, and may wait for the thread that waits at C3.
//
//   A thread that waits at C3 holds no lock that the M may want. A P is passed on with the mutex held, and often by a
//   thread that holds other locks; so the wait is left to the next user of the P, which holds none. Nor does the M wait
//   for that user: where the M waits for other Ms inside the runtime without a dispatch, as it does when it stops the
//   world, it says that it is aware (says_it_is_aware).
//
//   Without membarrier each L1 would need a fence. So no P is alone then, except that the only P of a program still
//   uses its queue plainly.
//
//   Plain threads that enter while the first one waits at C3 wait as well (on `ending`), until C4. The thread that
//   called run() becomes a plain thread when main has ended, but only for the rest of this run(): when the next run()
//   begins, it no longer takes such a lock.
//
// append-check-wake (proc.cpp) relies on A1 being a full barrier before A2. When a P that is alone does A1, it is none.
// This can only go wrong between that P and a thread that holds no P: an M that spun, or that dozes, or sysmon, which
// takes a promise over.
//
//     the M that is alone                           an M without a P
//     A1  append it (plain)                         S2  --spinning; or D1, dozer = itself (doze.cpp)
//         light barrier                             S2b alone? then a heavy barrier
//     A2  spinning? the dozer?                      S3  look at every queue; or D2
//
//   This is the asymmetric Dekker: A2 or S3 sees the other side. S2b reads alone_p, which stays set until no M is
//   unaware any more. So if S2b reads null, there are two cases. Either B1, which is seq_cst, comes after S2, and the
//   A2 of the M that becomes alone sees S2. Or what was made ready plainly is visible.
//
// Starting a goroutine takes no goroutine_lock. So a plain thread that does nothing else, such as run() when it starts
// main, does not count (sched/spawn.cpp).

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

void declare_all_aware() noexcept {
  sched.somebody_unaware.store(false, relaxed);
  P* p = sched.alone_p.load(relaxed);
  // release: a thread that reads null here sees what was made ready plainly (S2b). If a plain thread came, that ended
  // the plain use of locks only, and the queue is still unshared.
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
  const std::uint32_t outside = m->outside_at.load(acquire);  // first: m may leave that code meanwhile, after C2
  return m->depth.load(seq_cst) == outside;
}

// Called after C1: does C2, and notes the M that must be waited for. If p's owner itself is the caller, it is between
// two plain uses.
void look_who_is_unaware(P* p) noexcept {
  if (p == p_of(this_m())) return declare_all_aware();
  heavy_barrier();  // C2
  // acquire: if the M has given its P up, or is outside the runtime, its plain uses came before that.
  const M* m = p->m.load(acquire);
  if (!m || is_outside(m)) return declare_all_aware();
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
  if (m && sched.somebody_unaware.load(relaxed) && sched.unaware.m == m) declare_all_aware();
}

// ---

namespace {

WEFT_NOINLINE void wait_for_who_is_unaware(const M* m) noexcept {
  errno_stays keep;  // errno may be that of a goroutine that comes back from a call
  for (int looks = 0;; ++looks) {
    {
      lock_guard hold(sched.mutex);
      says_it_is_aware(m);  // m may be the one that held that P
      if (!sched.somebody_unaware.load(relaxed)) return;
      if (!is_still_unaware()) return declare_all_aware();
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
  wait_for_who_is_unaware(nullptr);  // C3
}

}  // namespace

void may_be_alone_again() noexcept {
  lock_guard hold(sched.mutex);
  if (alone_ended.load(relaxed) == alone_ends::with_this_run) alone_ended.store(alone_ends::not_yet, relaxed);
}

void begin_alone(std::uint32_t procs) noexcept {
  lock_guard hold(sched.mutex);
  if (P* p = sched.alone_p.load(relaxed)) end(p);
  declare_all_aware();
  if (procs == 1) begin(sched.all_ps[0].load(relaxed));
}

void end_alone() noexcept { end_for_locks(alone_ends::with_this_run); }

void plain_thread_comes() noexcept {
  end_for_locks(alone_ends::plain_thread_comes);
  lock_guard hold(sched.mutex);
  alone_ended.store(alone_ends::plain_thread_came, release);  // C4
}

}  // namespace weft::rt
