// mutex: the slow paths.
//
// Waiters stand in a queue that is found by the mutex's address (mutex_queue.hpp), in order of arrival. The first one
// is woken as an heir (heirs.hpp), and is handed the mutex once it is old.
//
//   the queue           must_wake_         unlock
//   empty               0                  frees the mutex
//   an heir is first    0                  frees the mutex; the heir is on its way
//   a waiter is first   armed_by_waiter    makes it the heir, or hands the mutex over
//                       armed_by_holder    the same
//   empty, or an heir   armed_by_holder    frees the mutex; the next unlock is a fast one again
//   empty               armed_by_waiter    the same: the end of a run() has left the waiters behind
//
// The queue and must_wake_ change only under the bucket.
//
// "asymmetric unlock". An unlock of a mutex without waiters is a plain store, at half the price of a locked
// instruction. It has looked at must_wake_ before, and a waiter may have come in between. So:
//
//     unlock                                  a waiter that becomes first in the queue (arm)
//     U0  must_wake_ == 0?   (plain)          W0  must_wake_ = 1, ++bell
//     U1  held_ = 0          (release)        W1  heavy barrier (runtime/asymmetric.hpp)
//         compiler barrier                    W2  held_ == 0? then take it, else sleep
//     U2  bell == 0?         (plain)
//
//   If W2 still finds the mutex held, then that holder's U1 was not visible at W1, so its U2 comes after W1 and sees
//   the bell; or even its U0 comes after W1 and sees must_wake_. Later holders see must_wake_. So no waiter sleeps on
//   unseen. The bell is not in the mutex, since the mutex may be destroyed right after U1. It is one of a fixed set,
//   chosen by the address and shared by unrelated mutexes. answer_bell() therefore looks in the queues for that
//   address: a waiter that is queued there is inside lock(), so a mutex exists there. It is the same one, or a new one
//   in its place, whose waiters may be woken without need. Where the kernel has no membarrier, all bells ring always.
//   They also ring while a run() ends, so that a goroutine that only locks and unlocks enters the runtime.
//
// A waiter that queues behind one that has armed relies on the W0 and W1 of that one. So the bell must not fall, not
// even for a moment, while must_wake_ stays armed_by_waiter (mutex_queue.hpp: remove_at).
//
// "arming in advance". W1 is a system call that interrupts each processor that runs a thread of the process. It is
// needed only after a W0 by a thread that does not hold the mutex: what a holder stores, its own unlock sees, and so do
// all later ones, by held_'s release and acquire, without a bell. must_wake_ is lowered only where nobody relies on it:
// when the queue is empty, or an heir is first. So a holder arms although nobody waits yet, where somebody soon will,
// as with a mutex that is held across a wait. There are three such cases: the holder has waited for the mutex itself;
// the mutex is handed over; unlock wakes an heir that came before and found the mutex held again (passed_by). The first
// unlock that finds nobody to wake takes the arming back: the mutex is held briefly.
//
// tests/model/mutex.pml is the model of all this.

#include "weft/sync/mutex.hpp"

#include "api/src/sync/mutex_queue.hpp"
#include "api/src/sync/shared_mutex_queues.hpp"
#include "runtime/asymmetric.hpp"
#include "sched/preempt.hpp"

namespace weft {

namespace detail {

constinit std::array<mutex_bell, std::size_t{1} << mutex_bell_bits> mutex_bells;

namespace {

WEFT_EARLY void ring_without_membarrier() noexcept {
  if (!rt::membarrier_works()) ring_for_all(+1);
}

}  // namespace

void ring_for_all(int change) noexcept {
  rings_for_all.fetch_add(static_cast<std::uint32_t>(change), rt::relaxed);
  for (std::size_t i = 0; i < mutex_bells.size(); ++i) {
    mutex_queues all(i);
    rt::lock_guard hold(all.bucket.mutex);
    if (change < 0) {
      all.drop_abandoned_of_all();
      shared_mutex_queues::drop_abandoned_of_all(all.bucket);
    }
    all.set_bell();
  }
}

}  // namespace detail

bool mutex::lock_slow(std::int64_t deadline) {
  using namespace detail;
  auto try_it = [this]() noexcept { return try_lock(); };
  auto time_is_left = [deadline] { return deadline == never_ns || rt::nanotime() < deadline; };
  if (look(lock_looks, try_it) || (time_is_left() && look_longer(try_it))) {
    note_met_at_lock();
    return true;
  }

  struct attempt {
    bool take() noexcept { return m.try_lock(); }
    bool take_soon() noexcept {
      return look_longer([this]() noexcept { return take(); });
    }
    bool take_or_queue() noexcept {
      if (w.queued)
        w.passed_by = true;
      else
        q.join(w, m);
      if (q.settle(m)) rt::heavy_barrier();  // W0, W1
      return take();                         // W2
    }
    void taken() noexcept {
      q.remove(w);
      q.settle_as_holder(m, true);
    }
    std::int64_t look_again_at() noexcept { return never_ns; }
    void give_up() noexcept {
      q.remove(w);
      q.settle(m);
    }

    mutex& m;
    mutex_waiter& w;
    mutex_queue& q;
  };
  rt::runtime_scope scope;
  mutex_queue q(this);
  mutex_waiter w(scope.g(), this);
  return lock_as_heir(scope, w, q.bucket.mutex, rt::wait_reason::mutex_lock, deadline, attempt{*this, w, q});
}

void mutex::unlock_slow() noexcept {
  using namespace detail;
  if (held_.load(rt::relaxed) == 0)
    rt::fatal("weft::mutex at {}: unlock of an unlocked mutex", static_cast<void*>(this));
  rt::runtime_scope scope;
  wake_list woken;
  mutex_queue q(this);
  rt::lock_guard hold(q.bucket.mutex);
  bool contended = false, hand_over = false;
  if (mutex_waiter* w = q.claim_first(woken)) {
    const rt::nanos now = rt::nanotime();
    rt::shorten_slice(scope.m(), now);
    hand_over = w->is_old(now);
    contended = hand_over || w->passed_by;
    if (hand_over) {
      q.remove(*w);
      w->handed_over = true;
    } else {
      w->heir = true;
    }
  } else if ((w = q.first())) {
    w->passed_by = false;  // an heir, on its way since an earlier unlock
  }
  q.settle_as_holder(*this, contended);
  // release: as in unlock. This is the last access. A waiter that joins the queue from now on sees it under the bucket.
  if (!hand_over) held_.store(0, rt::release);
}

void mutex::answer_bell(const void* address) noexcept {
  using namespace detail;
  rt::runtime_scope scope;
  wake_list woken;
  mutex_queue q(address);
  rt::lock_guard hold(q.bucket.mutex);
  q.drop_abandoned();
  mutex_waiter* w = q.first();
  if (!w) return;
  // A waiter is queued, and cannot leave without the bucket: so the mutex exists.
  mutex& m = *w->of;
  if (mutex_queue::is_held(m)) return;  // the unlock of its holder will see the waiter
  if ((w = q.claim_first(woken))) w->heir = true;
  q.settle(m);
}

}  // namespace weft
