// Waiting for an object of <weft/sync.hpp>: what its source files share.
//
// A waiter (`sync_waiter`) lies on the stack of the goroutine that waits, and is linked into the object's queue. Queues
// are under locks that do not belong to the objects: there is a fixed set of them ("buckets"), and an object's address
// selects its bucket. So a waker may release the lock after the object is gone. That makes the promise of these types
// possible: an object may be destroyed as soon as its waiter has returned. The waking side always does this:
//
//     lock the bucket - unlink and claim the waiters - change the object's word, for the last time -
//     unlock the bucket - ready() the claimed ones
//
// A waiter proceeds only after it was readied, or after it saw the changed word. Either way nobody touches the object
// afterwards.
//
// As long as a sync_waiter is queued, the holder of the bucket may touch it. A waiter is unlinked under the bucket, by
// its waker, or by itself when its time has passed. A waker whose claim fails (the time limit was faster, or run()
// ended) drops the waiter and goes on to the next, so that no wake-up is lost to a waiter that cannot use it.
//
// The runtime is entered before a bucket is locked: on entry a goroutine may be suspended, also for good (run() ends),
// and then nothing has happened yet. No bucket is held while another one is taken, nor across user code.
#pragma once

#include "api/src/support.hpp"
#include "api/src/sync/address_tree.hpp"
#include "sched/park.hpp"
#include "weft/sync/mutex.hpp"

namespace weft::detail {

struct mutex_waiter;
struct shared_mutex_waiter;

struct alignas(rt::cache_line) sync_bucket {
  rt::goroutine_lock mutex{rt::lock_rank::sync};
  address_tree<mutex_waiter> mutexes;                // mutex_queue.hpp
  address_tree<shared_mutex_waiter> shared_mutexes;  // shared_mutex_queues.hpp
  std::uint32_t to_wake = 0;                         // how many first waiters of mutexes are to be woken
};

sync_bucket& bucket_number(std::size_t i) noexcept;
inline sync_bucket& bucket_of(const void* object) noexcept { return bucket_number(address_hash(object)); }

// +1: from now on every unlock of a mutex enters the runtime. -1 takes that back, and drops waiters that were left
// behind. Used around the end of a run(): otherwise a goroutine that only locks and unlocks what is free would never
// enter the runtime, and so never stop.
void ring_for_all(int change) noexcept;

// Called after the end of a run(): serves threads that wait behind goroutines that it left behind (semaphore.cpp).
void threads_look_at_semaphores();

// Returns the lock for an object's queue.
inline rt::goroutine_lock& queue_lock(const void* object) noexcept { return bucket_of(object).mutex; }

struct sync_waiter {
  explicit sync_waiter(rt::G* waiting) noexcept : g(waiting) {}
  sync_waiter(const sync_waiter&) = delete;
  sync_waiter& operator=(const sync_waiter&) = delete;

  rt::G* const g;
  rt::wait_ticket ticket = rt::no_ticket;  // of a timed wait
  sync_waiter* next = nullptr;             // a ring: the first one's prev is the last
  sync_waiter* prev = nullptr;
  bool queued = false;
  std::int64_t amount = 0;  // semaphore: how much it wants
};

void push_back(sync_queue& q, sync_waiter& w) noexcept;
void remove(sync_queue& q, sync_waiter& w) noexcept;  // w must be queued

// Whether a goroutine that finds a lock held should look again for some µs before it sleeps.
bool may_look_longer() noexcept;
void note_met_at_lock() noexcept;  // called when it has taken a lock that another thread held at first

// Claimed waiters on their way to ready(). The destructor readies them. It must run inside the runtime and after the
// bucket is unlocked, so declare the list between the runtime_scope and the lock_guard.
class wake_list {
 public:
  wake_list() noexcept = default;
  wake_list(const wake_list&) = delete;
  wake_list& operator=(const wake_list&) = delete;
  ~wake_list();

  // Called under the bucket. False: the wait has ended otherwise.
  bool claim(sync_waiter& w) noexcept {
    if (!w.g->claim(w.ticket)) return false;
    (w.g->kind == rt::g_kind::foreign ? threads_ : goroutines_).push_back(w.g);
    return true;
  }
  // Unlinks all waiters, and claims those that can be claimed.
  void claim_all(sync_queue& q) noexcept;
  // Unlinks waiters up to the first that can be claimed, and claims that one. False: there is none.
  bool claim_first(sync_queue& q) noexcept;

 private:
  rt::g_list goroutines_, threads_;
};

// Waits until readied. The caller holds `held`, under which others find its waiter; block releases it.
void block(rt::runtime_scope& scope, rt::goroutine_lock& held, rt::wait_reason why) noexcept;

// The same until `deadline` (never_ns: no time limit). False: the time has passed, and w may still be queued. If there
// is no memory for a timer, leave() is called under `held` to unlink w, `held` is released, and std::bad_alloc is
// thrown.
template <class Leave>
bool block_once(rt::runtime_scope& scope, sync_waiter& w, rt::goroutine_lock& held, rt::wait_reason why,
                std::int64_t deadline, Leave leave) {
  w.ticket = deadline >= never_ns ? rt::no_ticket : w.g->begin_wait();
  bool timed_out;
  try {
    scope.resumed_on(rt::park_until(scope.m(), w.ticket, held, why, deadline, &timed_out));
  } catch (...) {
    leave();
    held.release_lock();
    throw;
  }
  return !timed_out;
}

// The same, but when the time has passed, leave() unlinks w if it is still queued.
template <class Leave>
bool block_until(rt::runtime_scope& scope, sync_waiter& w, rt::goroutine_lock& held, rt::wait_reason why,
                 std::int64_t deadline, Leave leave) {
  if (block_once(scope, w, held, why, deadline, leave)) return true;
  rt::lock_guard hold(held);
  if (w.queued) leave();
  return false;
}

}  // namespace weft::detail
