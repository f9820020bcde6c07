// countdown: a count that goes to zero while somebody waits takes the waiters along.
//
// Without waiters the word is all there is, and the thread that takes it to zero never looks at it again: a wait() that
// sees zero may return, and the object may be gone. With waiters, zero is reached only under the bucket: the queue is
// taken out of the object, then the word is set, as the last access, then the waiters are claimed and readied. So a
// count that is zero has no waiters, and the object can be used for the next round at once.

#include "weft/detail/countdown.hpp"

#include "api/src/sync/parking.hpp"
#include "weft/sync/latch.hpp"
#include "weft/sync/wait_group.hpp"

namespace weft {

namespace detail {

// Adds n, which takes the count to zero while somebody waits. False: the word is no longer what the caller saw.
bool countdown::to_zero(std::int64_t n) noexcept {
  rt::runtime_scope scope;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  std::int64_t w = word_.load(rt::relaxed);
  if (w + n * one != waiters) return false;
  sync_queue queue = queue_;
  // Other threads may still count, up or down. acq_rel: the woken waiters see what every thread that counted did
  // before.
  queue_.first = nullptr;
  if (!word_.compare_exchange_strong(w, 0, rt::acq_rel, rt::relaxed)) {
    queue_ = queue;
    return false;
  }
  // A thread that finds the count at zero now may destroy this object. All waiters are out of it.
  woken.claim_all(queue);
  return true;
}

bool countdown::wait_slow(std::int64_t deadline, countdown_of what) {
  rt::runtime_scope scope;
  if (deadline < never_ns && deadline <= rt::nanotime()) return is_zero();
  rt::goroutine_lock& bucket = queue_lock(this);
  bucket.acquire_lock();
  for (std::int64_t w = word_.load(rt::acquire); (w & waiters) == 0;) {
    if (w == 0) {
      bucket.release_lock();
      return true;
    }
    if (word_.compare_exchange_weak(w, w | waiters, rt::acquire, rt::acquire)) break;
  }
  sync_waiter w(scope.g());
  push_back(queue_, w);
  auto why = what == countdown_of::latch ? rt::wait_reason::latch_wait : rt::wait_reason::wait_group_wait;
  return block_until(scope, w, bucket, why, deadline, [&]() noexcept {
    remove(queue_, w);
    if (!queue_.first) word_.fetch_and(~waiters, rt::relaxed);
  });
}

}  // namespace detail

void wait_group::misuse(std::ptrdiff_t n) const noexcept {
  rt::fatal("weft::wait_group at {}: add({}) with the counter at {}: it would be {}", static_cast<const void*>(this), n,
            count_.count(), n < 0 ? "negative" : "too large");
}

void latch::misuse(const char* call, std::ptrdiff_t n) const noexcept {
  rt::fatal("weft::latch at {}: {}({}) with the counter at {}", static_cast<const void*>(this), call, n,
            count_.count());
}

}  // namespace weft
