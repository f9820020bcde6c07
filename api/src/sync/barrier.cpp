// barrier: everything is protected by the bucket; only the phase is also read without it. Between the last arrival and
// next_phase nobody may arrive: everybody who is expected has arrived, so one more is one too many.

#include "weft/sync/barrier.hpp"

#include "api/src/sync/parking.hpp"

namespace weft::detail {

void barrier_core::misuse(std::ptrdiff_t expected) const noexcept {
  rt::fatal("weft::barrier at {}: made for {} participants", static_cast<const void*>(this), expected);
}

bool barrier_core::arrive(std::ptrdiff_t n, bool drop, std::uint64_t* phase) noexcept {
  rt::runtime_scope scope;
  rt::lock_guard hold(queue_lock(this));
  if (n <= 0 || n > missing_) {
    rt::fatal("weft::barrier at {}: {} arrive, {} of {} are missing", static_cast<void*>(this), n, missing_, expected_);
  }
  missing_ -= n;
  if (drop) --expected_;
  *phase = phase_.load(rt::relaxed);
  return missing_ == 0;
}

void barrier_core::next_phase() noexcept {
  rt::runtime_scope scope;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  missing_ = expected_;
  woken.claim_all(queue_);
  // release: the waiters see what everybody did before arriving. This is the last access.
  phase_.store(phase_.load(rt::relaxed) + 1, rt::release);
}

void barrier_core::wait_slow(std::uint64_t phase) {
  rt::runtime_scope scope;
  rt::goroutine_lock& bucket = queue_lock(this);
  bucket.acquire_lock();
  if (phase_.load(rt::acquire) != phase) {
    bucket.release_lock();
    return;
  }
  sync_waiter w(scope.g());
  push_back(queue_, w);
  block(scope, bucket, rt::wait_reason::barrier_wait);
}

}  // namespace weft::detail
