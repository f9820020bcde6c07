// semaphore: with nobody waiting, its word is all there is, and the header changes it by CAS. With `waiters` set it
// changes only under the bucket: release hands permits to the first waiters, in order, as long as they suffice.

#include "weft/sync/semaphore.hpp"

#include "api/src/sync/parking.hpp"

#include <algorithm>

namespace weft {

using namespace detail;

void semaphore::misuse(const char* what, std::ptrdiff_t n) const noexcept {
  rt::fatal("weft::semaphore at {}: {} of {} ({} permits are free, at most {} can be)", static_cast<const void*>(this),
            what, n, available(), max());
}

// Under the bucket, with `waiters` set: there are so many free permits. Publishes the word: the last access.
void semaphore::grant(wake_list& woken, std::int64_t permits) noexcept {
  while (sync_waiter* w = queue_.first) {
    if (w->amount > permits && w->g->get_state() != rt::g_state::abandoned) break;
    remove(queue_, *w);
    if (woken.claim(*w)) permits -= w->amount;
  }
  // release: what was done before. seq_cst: a try that begins when release() has returned finds what is left.
  word_.store(permits * permit | (queue_.first ? waiters : 0), rt::seq_cst);
}

// Inside the runtime. What an ended run() left behind at the head of the queue may want more than is free, and no
// release comes to pass it by. Only those who come anew look: a thread that was queued behind it already waits on.
void semaphore::skip_abandoned() noexcept {
  if ((word_.load(rt::relaxed) & waiters) == 0) return;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  const sync_waiter* w = queue_.first;
  if (w && w->g->get_state() == rt::g_state::abandoned) grant(woken, word_.load(rt::relaxed) / permit);
}

bool semaphore::retake(std::ptrdiff_t n) noexcept {
  rt::runtime_scope scope;
  skip_abandoned();
  return take(n);
}

// Under the bucket: takes n permits; or says that somebody waits, if nobody does yet.
bool semaphore::take_or_announce(std::ptrdiff_t n) noexcept {
  for (std::int64_t w = word_.load(rt::relaxed); (w & waiters) == 0;) {
    bool enough = w / permit >= n;
    if (word_.compare_exchange_weak(w, enough ? w - n * permit : w | waiters, rt::acquire, rt::relaxed)) return enough;
  }
  return false;
}

// Under the bucket, by a thread that waits, whose w nobody can claim just now: true if it was its turn.
bool semaphore::come_by_again(sync_waiter& w, wake_list& woken) noexcept {
  while (queue_.first->g->get_state() == rt::g_state::abandoned) remove(queue_, *queue_.first);
  const std::int64_t permits = word_.load(rt::relaxed) / permit;
  if (queue_.first != &w) {
    grant(woken, permits);
    return false;
  }
  if (permits < w.amount) return false;
  remove(queue_, w);
  grant(woken, permits - w.amount);
  return true;
}

bool semaphore::acquire_slow(std::ptrdiff_t n, std::int64_t deadline) {
  return rt::wait_in_step([&] {
    rt::runtime_scope scope;
    skip_abandoned();
    if (deadline < never_ns && deadline <= rt::nanotime()) return take(n);
    rt::goroutine_lock& bucket = queue_lock(this);
    sync_waiter w(scope.g());
    w.amount = n;
    for (;;) {
      bucket.acquire_lock();
      if (!w.queued) {
        if (take_or_announce(n)) {
          bucket.release_lock();
          return true;
        }
        push_back(queue_, w);
      }
      wake_list woken;
      auto leave = [&]() noexcept {
        remove(queue_, w);
        grant(woken, word_.load(rt::relaxed) / permit);  // those behind may want less
      };
      // A run() may end, and leave goroutines at the head of the queue. Nobody is left to tell a thread.
      const std::int64_t until =
          scope.m() ? deadline : std::min<std::int64_t>(deadline, rt::nanotime() + foreign_look_again);
      if (block_once(scope, w, bucket, rt::wait_reason::semaphore_acquire, until, leave)) return true;
      rt::lock_guard hold(bucket);
      if (until == deadline) {
        if (w.queued) leave();
        return false;
      }
      if (w.queued && come_by_again(w, woken)) return true;
    }
  });
}

void semaphore::release_slow(std::ptrdiff_t n) noexcept {
  rt::runtime_scope scope;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  std::int64_t w = word_.load(rt::acquire);
  for (;;) {
    if (n < 0 || n > max() - w / permit) misuse("release", n);
    if (w & waiters) return grant(woken, w / permit + n);
    if (word_.compare_exchange_weak(w, w + n * permit, rt::release, rt::acquire)) return;
  }
}

}  // namespace weft
