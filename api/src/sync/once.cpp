// call_once: the word says whether the call was made, is being made, and whether somebody waits for that. It leaves
// `running_with_waiters` only under the bucket: all waiters are claimed, the word is set, as the last access, and the
// waiters are readied. After a call that failed, each of them looks again, and one gets the turn.

#include "weft/sync/once.hpp"

#include "api/src/sync/parking.hpp"

namespace weft {

using namespace detail;

bool once_flag::begin() {
  std::uint32_t w = unset;
  if (word_.compare_exchange_strong(w, running, rt::acquire, rt::acquire)) return true;
  if (w == set) return false;
  rt::runtime_scope scope;
  rt::goroutine_lock& bucket = queue_lock(this);
  for (;;) {
    bucket.acquire_lock();
    for (w = word_.load(rt::acquire); w != running_with_waiters;) {
      std::uint32_t next = w == unset ? running : running_with_waiters;
      if (w != set && !word_.compare_exchange_weak(w, next, rt::acquire, rt::acquire)) continue;
      if (w == running) break;
      bucket.release_lock();
      return w == unset;
    }
    sync_waiter me(scope.g());
    push_back(queue_, me);
    block(scope, bucket, rt::wait_reason::once_wait);
  }
}

void once_flag::end(bool done) noexcept {
  // release: a thread that sees the flag set sees what the call did.
  std::uint32_t w = running;
  if (word_.compare_exchange_strong(w, done ? set : unset, rt::release, rt::relaxed)) return;
  rt::runtime_scope scope;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  woken.claim_all(queue_);
  word_.store(done ? set : unset, rt::release);
}

}  // namespace weft
