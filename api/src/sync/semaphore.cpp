// semaphore: while nobody waits, the word is all there is, and the header changes it by CAS. While `waiters` is set, it
// changes only under the bucket: release hands permits to the first waiters, in order, as long as they suffice.

#include "weft/sync/semaphore.hpp"

#include "api/src/sync/parking.hpp"
#include "runtime/linked_list.hpp"

#include <mutex>
#include <optional>

namespace weft {

using namespace detail;

namespace {

// Foreign threads that wait for semaphores. A goroutine ahead of such a thread in the queue may be left behind by a
// run() that ends, so the end of a run() looks at the semaphores of all these threads:
//
//     a thread that waits                       the end of a run()
//     T1  is in the list                        E1  its goroutines are abandoned
//     T2  looks whether the first is abandoned  E2  goes through the list, and looks in the same way
//     T3  queues
//
//     T1 and E2 are under the list's lock. If E2 does not find the thread, T1 comes later, and T2 sees E1. If E2 finds
//     it, the semaphore exists, as that thread is in acquire().
class known_thread {
 public:
  using look = void (*)(semaphore*) noexcept;
  known_thread(semaphore* waits_for, look l) : of_(waits_for), look_(l) {
    std::lock_guard hold(mutex_);
    all_.push_back(this);
  }
  ~known_thread() {
    std::lock_guard hold(mutex_);
    all_.erase(this);
  }
  known_thread(const known_thread&) = delete;
  known_thread& operator=(const known_thread&) = delete;

  static void all_look() {
    std::lock_guard hold(mutex_);
    for (known_thread* t : all_) t->look_(t->of_);
  }

 private:
  semaphore* const of_;
  const look look_;
  rt::list_links<known_thread> links_;

  static constinit inline std::mutex mutex_;  // no goroutine takes it
  static constinit inline rt::linked_list<known_thread, &known_thread::links_> all_;
};

}  // namespace

void detail::threads_look_at_semaphores() { known_thread::all_look(); }

void semaphore::misuse(const char* what, std::ptrdiff_t n) const noexcept {
  rt::fatal("weft::semaphore at {}: {} of {} ({} permits are free, at most {} can be)", static_cast<const void*>(this),
            what, n, available(), max());
}

// Hands out `permits`, the free ones, and publishes the word with those that are left, which is the last access. Called
// under the bucket, with `waiters` set.
void semaphore::grant(wake_list& woken, std::int64_t permits) noexcept {
  while (sync_waiter* w = queue_.first) {
    if (w->amount > permits && !w->g->waits_for_good()) break;
    remove(queue_, *w);
    if (woken.claim(*w)) permits -= w->amount;
  }
  // release: what was done before. seq_cst: a try that begins after release() has returned finds what is left.
  word_.store(permits * permit | (queue_.first ? waiters : 0), rt::seq_cst);
}

// Called inside the runtime. A waiter at the head of the queue that an ended run() left behind may want more permits
// than are free, and no release may come that passes it by. So this passes it by.
void semaphore::skip_abandoned() noexcept {
  if ((word_.load(rt::relaxed) & waiters) == 0) return;
  wake_list woken;
  rt::lock_guard hold(queue_lock(this));
  const sync_waiter* w = queue_.first;
  if (w && w->g->waits_for_good()) grant(woken, word_.load(rt::relaxed) / permit);
}

bool semaphore::retake(std::ptrdiff_t n) noexcept {
  rt::runtime_scope scope;
  skip_abandoned();
  return take(n);
}

bool semaphore::acquire_slow(std::ptrdiff_t n, std::int64_t deadline) {
  return rt::with_predicted_return([&] {
    rt::runtime_scope scope;
    std::optional<known_thread> known;
    if (!scope.m()) known.emplace(this, [](semaphore* s) noexcept { s->skip_abandoned(); });  // T1
    skip_abandoned();                                                                         // T2
    if (deadline < never_ns && deadline <= rt::nanotime()) return take(n);
    rt::goroutine_lock& bucket = queue_lock(this);
    bucket.acquire_lock();
    for (std::int64_t w = word_.load(rt::relaxed); (w & waiters) == 0;) {
      bool enough = w / permit >= n;
      if (!word_.compare_exchange_weak(w, enough ? w - n * permit : w | waiters, rt::acquire, rt::relaxed)) continue;
      if (!enough) break;
      bucket.release_lock();
      return true;
    }
    sync_waiter w(scope.g());
    w.amount = n;
    wake_list woken;
    push_back(queue_, w);
    return block_until(scope, w, bucket, rt::wait_reason::semaphore_acquire, deadline, [&]() noexcept {
      remove(queue_, w);
      grant(woken, word_.load(rt::relaxed) / permit);  // the waiters behind it may want less
    });
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
