// countdown: who counts to zero while somebody waits takes the waiters along.
//
// Without waiters the word is all there is, and whoever takes it to zero never looks at it again: a wait() that sees
// zero may return, and the object be gone. With waiters, zero is reached only under the bucket: the waiters are
// claimed first, then the word is set, for the last time, then they are readied. So a count that is zero has no
// waiters, and the object can be used for the next round at once.

#include "weft/detail/countdown.hpp"

#include "api/src/sync/parking.hpp"
#include "weft/sync/latch.hpp"
#include "weft/sync/wait_group.hpp"

namespace weft {

namespace detail {

// False: the word is not what the caller saw any more.
bool countdown::to_zero(std::int64_t n) noexcept {
  rt::runtime_scope scope;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  std::int64_t w = word_.load(rt::relaxed);
  if (w + n * one != waiters) return false;
  sync_queue queue = queue_;
  // Others may still count, up or down. acq_rel: what all who counted did before is seen by those who are woken.
  queue_.first = nullptr;
  if (!word_.compare_exchange_strong(w, 0, rt::acq_rel, rt::relaxed)) {
    queue_ = queue;
    return false;
  }
  // Whoever finds the count at zero now may destroy this; the waiters are all out of it.
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
