// mutex: the slow ways.
//
// Who waits stands in a queue found by the mutex's address (the bucket's `queues`), in order of arrival. The first one
// is woken as an heir (heirs.hpp), and is handed the mutex when it has become old.
//
//   the queue           must_wake_   unlock
//   empty               0            frees the mutex
//   an heir is first    0            frees the mutex; the heir is on its way
//   a waiter is first   1            makes it the heir, or hands the mutex over
//
// The queue and must_wake_ change only under the bucket.
//
// "asymmetric unlock". An unlock of a mutex without waiters is a plain store, half the price of a locked instruction.
// It has looked at must_wake_ before, and a waiter may have come in between. So:
//
//     unlock                                  a waiter that becomes first in the queue (arm)
//     U0  must_wake_ == 0?   (plain)          W0  must_wake_ = 1, ++bell
//     U1  held_ = 0          (release)        W1  heavy barrier (runtime/asymmetric.hpp)
//         compiler barrier                    W2  held_ == 0? then take it, else sleep
//     U2  bell == 0?         (plain)
//
//   If W2 still finds the mutex held, then that holder's U1 was not visible at W1, so its U2 comes after W1 and sees
//   the bell; or even its U0 comes after W1 and sees must_wake_. Later holders see must_wake_. So nobody sleeps on
//   unseen. The bell is not in the mutex, since the mutex may be destroyed right after U1; it is one of a fixed set,
//   chosen by the address and shared by strangers. answer_bell() therefore looks in the queues for that address:
//   somebody who is queued there is inside lock(), so the mutex exists, and it is the same one or a new one in its
//   place, whose waiters may be woken without need. Where the kernel has no membarrier, the bells ring always; and
//   they do while a run() ends, so that a goroutine that only locks and unlocks comes by.
//
// Only W0 by somebody who does not hold the mutex needs W1: if the holder itself arms, its own unlock sees that, and
// so do the holders after it.

#include "weft/sync/mutex.hpp"

#include "api/src/sync/heirs.hpp"
#include "runtime/asymmetric.hpp"

namespace weft {

namespace detail {

constinit std::array<mutex_bell, std::size_t{1} << mutex_bell_bits> mutex_bells;

namespace {

// What every bell rings beside its waiters: without membarrier, and at the end of a run(). Changed by ring_for_all
// only.
constinit rt::atomic<std::uint32_t> rings_for_all{0};

[[maybe_unused]] const bool rings_without_membarrier = [] {
  if (!rt::membarrier_works()) ring_for_all(+1);
  return !rt::membarrier_works();
}();

}  // namespace

struct mutex_waiter : heir_waiter {
  mutex_waiter(rt::G* waiting, mutex* m) noexcept : heir_waiter(waiting), of(m) {}
  mutex_waiter* after() const noexcept { return static_cast<mutex_waiter*>(next); }

  mutex* const of;
  mutex_waiter* next_queue = nullptr;  // in the first waiter of a queue: the first of the bucket's next queue
};

// The queue for one address. All members: under the bucket.
struct mutex_queue {
  explicit mutex_queue(const void* mutex_address) noexcept
      : bucket(bucket_of(mutex_address)), bell(mutex_bells[address_hash(mutex_address)]), address(mutex_address) {}

  // The first waiter, or null.
  mutex_waiter* first() const noexcept { return *place(); }

  // At the end. Who comes into an empty queue arms anew, whatever those that were dropped left behind.
  void join(mutex_waiter& w, mutex& m) noexcept {
    drop_abandoned();
    mutex_waiter** p = place();
    if (!*p) m.must_wake_.store(0, rt::relaxed);
    sync_queue ring{*p};
    detail::push_back(ring, w);
    *p = static_cast<mutex_waiter*>(ring.first);
  }

  void remove(mutex_waiter& w) noexcept { remove_at(place(), w); }

  // Drops those at the front that run() has left behind.
  void drop_abandoned() noexcept {
    for (mutex_waiter* w; (w = first()) && w->abandoned();) remove(*w);
  }

  // The same for all queues of the bucket. Their mutexes may be gone and are not touched.
  void sweep() noexcept {
    for (mutex_waiter** p = &bucket.queues; *p;) {
      if ((*p)->abandoned()) {
        remove_at(p, **p);
      } else {
        p = &(*p)->next_queue;
      }
    }
    set_bell(bucket, bell);
  }

  // Claims the first that can be, and returns it, still first. Null: nobody waits, or an heir is on its way.
  mutex_waiter* claim_first(wake_list& woken) noexcept {
    while (mutex_waiter* w = first()) {
      if (w->heir && !w->abandoned()) return nullptr;
      if (!w->heir && woken.claim(*w)) return w;
      remove(*w);
    }
    return nullptr;
  }

  // Brings must_wake_ and the bell in line with the queue. True: there is somebody to wake now, and was nobody before
  // (W0).
  bool settle(mutex& m) noexcept {
    mutex_waiter* w = first();
    bool was = m.must_wake_.load(rt::relaxed) != 0;
    bool is = w && !w->heir;
    if (was == is) return false;
    m.must_wake_.store(is, rt::relaxed);
    set_bell(bucket, bell);
    return is;
  }

  static void set_bell(const sync_bucket& bucket, mutex_bell& bell) noexcept {
    std::uint32_t n = rings_for_all.load(rt::relaxed);
    for (mutex_waiter* w = bucket.queues; w; w = w->next_queue) n += !w->heir;
    bell.rings.store(n, rt::relaxed);
  }

  // Held by another one: nothing to do for those who wait.
  static bool is_held(const mutex& m) noexcept { return m.held_.load(rt::relaxed) != 0; }

  sync_bucket& bucket;
  mutex_bell& bell;
  const void* const address;

 private:
  static void remove_at(mutex_waiter** place, mutex_waiter& w) noexcept {
    mutex_waiter* other_queues = (*place)->next_queue;
    sync_queue ring{*place};
    detail::remove(ring, w);
    if (ring.first) {
      *place = static_cast<mutex_waiter*>(ring.first);
      (*place)->next_queue = other_queues;
    } else {
      *place = other_queues;
    }
  }

  // Where the queue's first waiter is written down, or would be.
  mutex_waiter** place() const noexcept {
    mutex_waiter** p = &bucket.queues;
    while (*p && (*p)->of != address) p = &(*p)->next_queue;
    return p;
  }
};

void ring_for_all(int change) noexcept {
  rings_for_all.fetch_add(static_cast<std::uint32_t>(change), rt::relaxed);
  for (std::size_t i = 0; i < mutex_bells.size(); ++i) {
    rt::lock_guard hold(bucket_number(i).mutex);
    mutex_queue::set_bell(bucket_number(i), mutex_bells[i]);
  }
}

}  // namespace detail

bool mutex::lock_slow(std::int64_t deadline) {
  using namespace detail;
  if (look(lock_looks, [this]() noexcept { return try_lock(); })) return true;

  struct attempt {
    bool take() noexcept { return m.try_lock(); }
    bool take_or_queue() noexcept {
      if (!w.queued) q.join(w, m);
      if (q.settle(m)) rt::heavy_barrier();  // W0, W1
      return take();                         // W2
    }
    void taken() noexcept { give_up(); }
    void give_up() noexcept {
      q.remove(w);
      q.settle(m);
    }

    mutex& m;
    mutex_waiter& w;
    mutex_queue& q;
  };
  rt::runtime_scope scope;
  mutex_queue q(this);
  mutex_waiter w(scope.g(), this);
  return lock_as_heir(scope, w, q.bucket.mutex, rt::wait_reason::mutex_lock, deadline, attempt{*this, w, q});
}

void mutex::unlock_slow() noexcept {
  using namespace detail;
  if (held_.load(rt::relaxed) == 0)
    rt::fatal("weft::mutex at {}: unlock of an unlocked mutex", static_cast<void*>(this));
  rt::runtime_scope scope;
  wake_list woken;
  mutex_queue q(this);
  rt::lock_guard hold(q.bucket.mutex);
  bool hand_over = false;
  if (mutex_waiter* w = q.claim_first(woken)) {
    hand_over = w->is_old(rt::nanotime());
    if (hand_over) {
      q.remove(*w);
      w->handed_over = true;
    } else {
      w->heir = true;
    }
  }
  q.settle(*this);
  // release: as in unlock. The last access; who joins the queue from now on sees it under the bucket.
  if (!hand_over) held_.store(0, rt::release);
}

void mutex::answer_bell(const void* address) noexcept {
  using namespace detail;
  rt::runtime_scope scope;
  wake_list woken;
  mutex_queue q(address);
  rt::lock_guard hold(q.bucket.mutex);
  q.drop_abandoned();
  mutex_waiter* w = q.first();
  if (!w) return q.sweep();
  // Somebody waits, and cannot leave without the bucket: so there is a mutex.
  mutex& m = *w->of;
  if (mutex_queue::is_held(m)) return;  // its unlock will see who waits
  if ((w = q.claim_first(woken))) w->heir = true;
  q.settle(m);
}

}  // namespace weft
