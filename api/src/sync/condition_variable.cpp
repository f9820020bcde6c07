// condition_variable: the bucket and the mutex are released in one step.
//
// The waiter queues under the bucket while it holds the mutex, and releases both after it has left its stack (the
// commit step of park): first the bucket, then the mutex. A notifier that comes in between readies a goroutine that
// will find the mutex locked, and wait for it, so no notification is lost. After the bucket is released, nothing is
// read from the waiter.

#include "weft/sync/condition_variable.hpp"

#include "api/src/sync/parking.hpp"
#include "sched/park.hpp"

namespace weft {

using namespace detail;

namespace {

struct held_locks {
  rt::lock* bucket;
  mutex* user;
};

void unlock_both(rt::G*, void* arg) noexcept {
  held_locks held = *static_cast<held_locks*>(arg);  // copied: it lies on the waiter's stack
  held.bucket->release_lock();
  held.user->unlock();
}

}  // namespace

bool condition_variable::wait_slow(mutex* m, bool owned, std::int64_t deadline) {
  if (!owned) rt::fatal("weft::condition_variable at {}: wait without the mutex locked", static_cast<void*>(this));
  return rt::with_predicted_return([&] {
    bool notified = true;
    {
      rt::runtime_scope scope;
      rt::goroutine_lock& bucket = queue_lock(this);
      sync_waiter w(scope.g());
      held_locks held{&bucket, m};
      bucket.acquire_lock();
      push_back(queue_, w);
      waiting_.store(1, rt::relaxed);
      auto leave = [&] {
        if (!w.queued) return;
        remove(queue_, w);
        waiting_.store(queue_.first != nullptr, rt::relaxed);
      };
      if (deadline >= never_ns) {
        scope.resumed_on(rt::park(scope.m(), unlock_both, &held, rt::wait_reason::condition_wait));
      } else {
        w.ticket = w.g->begin_wait();
        bool timed_out;
        try {
          scope.resumed_on(rt::park_until(scope.m(), w.ticket, unlock_both, &held, rt::wait_reason::condition_wait,
                                          deadline, &timed_out));
        } catch (...) {
          leave();
          bucket.release_lock();
          throw;
        }
        if (timed_out) {
          rt::lock_guard hold(bucket);
          leave();
          notified = false;
        }
      }
    }
    m->lock();
    return notified;
  });
}

void condition_variable::wake(bool all) noexcept {
  rt::runtime_scope scope;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  if (all) {
    woken.claim_all(queue_);
  } else {
    woken.claim_first(queue_);
  }
  waiting_.store(queue_.first != nullptr, rt::relaxed);
}

}  // namespace weft
