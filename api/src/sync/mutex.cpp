// mutex: the slow ways.
//
// Who waits stands in a queue found by the mutex's address (the bucket's `queues`), in order of arrival. Unlock wakes the
// first one and frees the mutex at once: whoever comes first takes it, most often a goroutine that runs already. The woken
// one is the "heir": it stays first in the queue, and as long as there is an heir on its way, unlock wakes nobody else. If
// the heir comes late it waits on, still first. A waiter that has waited for `patience` is not passed by any more: unlock then
// leaves the mutex locked and hands it over (Go's starvation mode, decided for each waiter).
//
//   the queue           must_wake_   unlock
//   empty               0            frees the mutex
//   an heir is first    0            frees the mutex; the heir is on its way
//   a waiter is first   1            makes it the heir, or hands the mutex over
//
// The queue and must_wake_ change only under the bucket.
//
// "asymmetric unlock". An unlock of a mutex without waiters is a plain store, half the price of a locked instruction. It has
// looked at must_wake_ before, and a waiter may have come in between. So:
//
//     unlock                                  a waiter that becomes first in the queue (arm)
//     U0  must_wake_ == 0?   (plain)          W0  must_wake_ = 1, ++bell
//     U1  held_ = 0          (release)        W1  membarrier: a full barrier on every thread of the process
//         compiler barrier                    W2  held_ == 0? then take it, else sleep
//     U2  bell == 0?         (plain)
//
//   If W2 still finds the mutex held, then that holder's U1 was not visible at W1, so its U2 comes after W1 and sees the
//   bell; or even its U0 comes after W1 and sees must_wake_. Later holders see must_wake_. So nobody sleeps on unseen.
//   The bell is not in the mutex, since the mutex may be destroyed right after U1; it is one of a fixed set, chosen by the
//   address and shared by strangers. answer_bell() therefore looks in the queues for that address: somebody who is queued
//   there is inside lock(), so the mutex exists, and it is the same one or a new one in its place, whose waiters may be woken
//   without need. Where the kernel has no membarrier, the bells ring always.
//
// Only W0 by somebody who does not hold the mutex needs W1: if the holder itself arms, its own unlock sees that, and so do the
// holders after it.
//
// An heir whose run() ended before it came never comes. Everybody who joins the queue looks for that (drop_dead_heir), and
// a thread that is not weft's and may be in the queue across the end of a run() looks again from time to time.

#include "weft/sync/mutex.hpp"

#include "api/src/sync/parking.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace weft {

namespace detail {

namespace {

constexpr rt::nanos patience = rt::millisecond;
constexpr rt::nanos thread_looks_again = 100 * rt::millisecond;

// Waits for a mutex that is held for a moment are shorter than a park.
constexpr int lock_spins = 4;
constexpr int heir_spins = 8;

bool register_for_membarrier() noexcept {
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0) return true;
  for (mutex_bell& b : mutex_bells) b.rings.fetch_add(1, rt::relaxed);  // every unlock goes the slow way
  return false;
}

const bool has_membarrier = register_for_membarrier();

void barrier_on_all_threads() noexcept {
  // ENOMEM is all that can go wrong, and passes.
  while (has_membarrier && ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
  }
}

}  // namespace

constinit std::array<mutex_bell, std::size_t{1} << mutex_bell_bits> mutex_bells;

struct mutex_waiter : sync_waiter {
  mutex_waiter(rt::G* g, const mutex* m) noexcept : sync_waiter(g), of(m) {}
  const mutex* const of;
  mutex_waiter* next_queue = nullptr;  // the first waiter's: that of another mutex of the bucket
  rt::nanos since = 0;
  bool heir = false;        // woken, and first in the queue until it has the mutex
  bool handed_over = false;  // it has the mutex
};

// The queue of one mutex, under its bucket.
struct mutex_queue {
  mutex_queue(sync_bucket& b, const void* m) noexcept : bucket(b), address(m) {
    for (place = &b.queues; *place && (*place)->of != m; place = &(*place)->next_queue) {
    }
  }

  mutex_waiter* first() const noexcept { return *place; }

  void push_back(mutex_waiter& w) noexcept {
    sync_queue q{*place};
    detail::push_back(q, w);
    *place = static_cast<mutex_waiter*>(q.first);
  }

  void remove(mutex_waiter& w) noexcept {
    mutex_waiter* others = (*place)->next_queue;
    sync_queue q{*place};
    detail::remove(q, w);
    *place = q.first ? static_cast<mutex_waiter*>(q.first) : others;
    if (q.first) (*place)->next_queue = others;
  }

  // Null, or the first waiter.
  mutex_waiter* first_after_drop() noexcept;

  mutex_bell& bell() const noexcept { return mutex_bells[address_hash(address)]; }

  // W0. The caller holds the mutex, or does W1 and W2 afterwards.
  static void arm(const mutex& m) noexcept;
  static void disarm(const mutex& m) noexcept;

  sync_bucket& bucket;
  const void* address;
  mutex_waiter** place;
};

}  // namespace detail

}  // namespace weft
