// event: the word is 0 (off), `is_on`, or `waiters` (off, and somebody waits). While there are waiters, it changes only
// under the bucket: set() claims them, turns the word on, as the last access, and readies them.

#include "weft/sync/event.hpp"

#include "api/src/sync/parking.hpp"

namespace weft {

using namespace detail;

void event::set_slow() noexcept {
  rt::runtime_scope scope;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  woken.claim_all(queue_);
  // A read-modify-write, so that a thread that sees only this set() still sees what others did before an earlier set().
  word_.exchange(is_on, rt::release);
}

bool event::wait_slow(std::int64_t deadline) const {
  rt::runtime_scope scope;
  if (deadline < never_ns && deadline <= rt::nanotime()) return is_set();
  rt::goroutine_lock& bucket = queue_lock(this);
  bucket.acquire_lock();
  for (std::uint32_t w = word_.load(rt::acquire); w != waiters;) {
    if (w == is_on) {
      bucket.release_lock();
      return true;
    }
    if (word_.compare_exchange_weak(w, waiters, rt::acquire, rt::acquire)) break;
  }
  sync_waiter w(scope.g());
  push_back(queue_, w);
  return block_until(scope, w, bucket, rt::wait_reason::event_wait, deadline, [&]() noexcept {
    remove(queue_, w);
    if (!queue_.first) word_.store(0, rt::relaxed);
  });
}

}  // namespace weft
