// "asymmetric unlock" of the low-level lock. It does for threads what a mutex does for goroutines
// (api/src/sync/mutex.cpp).
//
// A thread that sleeps for a lock stands in a queue, in order of arrival, together with the sleepers of all locks whose
// addresses are of the same kind. Of the sleepers of one lock, the first is woken, by one unlock. Until it has got the
// lock or sleeps again, it is "on its way", and unlocks in the meantime wake nobody. The bell of a kind counts the
// locks whose first sleeper is not on its way. Queue and bell change only under the queue's mutex.
//
//     unlock                             a thread that is a lock's first sleeper, and is not on its way (any more)
//     U1  free               (release)   W0  ++bell; the lock is free? then take it, else sleep for 50 us
//     U2  compiler barrier               W1  heavy barrier (asymmetric.hpp)
//     U3  the bell rings?    (plain)     W2  the lock is free? then take it, else sleep
//
//   A thread that is woken looks again. If W2 finds the lock held, the U1 of that holder was not visible at W1, so its
//   U3 comes after W1 and sees the bell. The same holds for later holders. So no sleeper is overlooked. The barrier
//   interrupts other processors, but it is seldom needed: an unlock misses the bell only if W0 falls between its U3 and
//   the moment when its U1 becomes visible; and it does harm only if no other unlock follows within 50 us. A thread
//   that rings while it holds the lock (it rings for the next sleeper when it leaves the queue) needs no barrier: its
//   own U3 follows, and later holders acquire the lock after it.
//
//   The bell is not in the lock, because the lock may be gone right after U1. The address alone finds the queue, and a
//   thread that is queued under it waits for a lock that exists. If that is another lock at the same place, the thread
//   is woken without need.
//
// Without membarrier the bells always ring, and an unlock that answers has a full fence before it looks. The model is
// tests/model/lock.pml.

#include "runtime/lock.hpp"

#include "runtime/asymmetric.hpp"
#include "runtime/clock.hpp"
#include "runtime/fatal.hpp"
#include "runtime/futex.hpp"
#include "runtime/linked_list.hpp"
#include "runtime/note.hpp"

#include <memory>
#include <pthread.h>

namespace weft::rt {

namespace {

// How many pauses lie between one look at a held lock and the next: 2 to 4 µs in all, which is longer than nearly any
// critical section, and shorter than a sleep and a wake-up. Each look takes the cache line away from the holder, which
// needs it back to unlock, and most often locks again soon. So after a few looks the holder is left undisturbed for
// some rounds.
//
// Critical sections that take longer are rare. Under sched.mutex: a P is taken from a goroutine that runs, or beside
// one that was alone, which takes a membarrier, a look at the thread's state in /proc, and a change of its time slices;
// threads are counted for the deadlock check; an M is made; a queue's array grows or is given back. Under the other
// locks: memory is mapped or given back; many entries of a timer heap are put right; an M may have to be made for a
// timer that is set under a channel's lock. sched.world is held for as long as the world is stopped, or a run() takes
// to end: a thread that wants it looks now and then (acquire_world).
constexpr int pauses[] = {8, 32, 64};

// How long the first sleeper trusts that its bell is heard without a barrier.
constexpr nanos barrier_after = 50 * microsecond;

// Guards a queue. Its word is 0 (free), 1 (held) or 2 (held, with sleepers). It is never destroyed, so a thread that
// has given it back may still look at it.
class queue_mutex {
 public:
  void acquire_mutex() noexcept {
    std::uint32_t want = 0;
    if (word_.compare_exchange_strong(want, 1, acquire, relaxed)) return;
    while (word_.exchange(2, acquire) != 0) futex_wait(&word_, 2);
  }
  void release_mutex() noexcept {
    if (word_.exchange(0, release) == 2) futex_wake(&word_, 1);
  }

 private:
  atomic<std::uint32_t> word_{0};
};

// A thread that sleeps for a lock, on its own stack.
struct sleeper {
  explicit sleeper(const lock* l) noexcept : wants(l) {}

  const lock* const wants;
  bool on_its_way = false;
  note woken;
  list_links<sleeper> in_queue;
};

// The mutex guards everything. The lock `of` may be gone, unless it has a sleeper.
struct alignas(cache_line) sleepers_queue {
  queue_mutex mutex;
  linked_list<sleeper, &sleeper::in_queue> sleepers;

  sleeper* first_of(const lock* of) const noexcept {
    for (sleeper* s : sleepers) {
      if (s->wants == of) return s;
    }
    return nullptr;
  }
};

constinit std::array<sleepers_queue, std::size_t{1} << lock_bell_bits> queues;

// ring counts one more lock, silence one less. They are called with the queue's mutex held.
void ring(lock_bell& bell) noexcept { bell.rings.fetch_add(1, relaxed); }
void silence(lock_bell& bell) noexcept { bell.rings.fetch_sub(1, relaxed); }

// The child of a fork() has none of the threads that slept here.
void forget_sleepers() noexcept {
  for (lock_bell& bell : lock_bells) bell.rings.fetch_and(lock_bell::always, relaxed);
  for (sleepers_queue& q : queues) std::construct_at(&q);
}

WEFT_EARLY void prepare_locks() noexcept {
  if (::pthread_atfork(nullptr, nullptr, forget_sleepers) != 0) fatal("no memory to watch for fork()");
  if (!membarrier_works()) return;
  for (lock_bell& bell : lock_bells) bell.rings.fetch_and(~lock_bell::always, relaxed);
}

}  // namespace

constinit std::array<lock_bell, std::size_t{1} << lock_bell_bits> lock_bells;

bool lock::spin() noexcept {
  const lock_bell& bell = lock_bells[kind()];
  for (int n : pauses) {
    if (word_.load(relaxed) == free_word && take()) return true;
    if ((bell.rings.load(relaxed) & ~lock_bell::always) != 0) return false;  // one spinner is enough
    for (; n > 0; --n) cpu_relax();
  }
  return word_.load(relaxed) == free_word && take();
}

void lock::acquire_slow() noexcept {
  if (spin()) return;
  sleepers_queue& q = queues[kind()];
  lock_bell& bell = lock_bells[kind()];
  sleeper me(this);
  q.mutex.acquire_mutex();
  q.sleepers.push_back(&me);
  for (;;) {
    const bool first = q.first_of(this) == &me;
    if (first) {
      me.on_its_way = false;
      ring(bell);    // W0
      if (take()) {  // otherwise the 50 us would pass if the last holder had just given it back, and heard no bell
        silence(bell);
        break;
      }
    }
    q.mutex.release_mutex();
    if (!first) {
      me.woken.sleep();
    } else if (!me.woken.sleep_until(nanotime() + barrier_after)) {
      heavy_barrier();  // W1
      q.mutex.acquire_mutex();
      if (!me.on_its_way && take()) {  // W2
        silence(bell);
        break;
      }
      q.mutex.release_mutex();
      me.woken.sleep();
    }
    me.woken.clear();
    const bool taken = spin();
    q.mutex.acquire_mutex();
    if (taken) break;
  }
  // The lock is ours, and we were its first sleeper, because no other one is ever woken.
  q.sleepers.erase(&me);
  if (q.first_of(this)) ring(bell);
  q.mutex.release_mutex();
}

void lock::wake_sleeper() noexcept {
  lock_bell& bell = lock_bells[kind()];
  if (WEFT_UNLIKELY(bell.rings.load(relaxed) & lock_bell::always)) {
    full_fence();
    if (bell.rings.load(relaxed) == lock_bell::always) return;
  }
  sleepers_queue& q = queues[kind()];
  q.mutex.acquire_mutex();
  sleeper* s = q.first_of(this);
  const bool wakes = s && !s->on_its_way;
  if (wakes) {
    s->on_its_way = true;
    silence(bell);
  }
  q.mutex.release_mutex();
  if (wakes) s->woken.wakeup();  // the sleeper may be gone at the next instruction
}

#if WEFT_LOCK_RANKS

namespace {

// Ranks held by this thread. Goroutines never suspend with a lock held except to hand it to their commit step,
// which runs on the same thread, so a count per thread is right.
thread_local constinit std::uint16_t held_count[static_cast<std::size_t>(lock_rank::leaf) + 1] = {};

WEFT_NOINLINE std::uint16_t* held_here() noexcept { return held_count; }

}  // namespace

void lock::check_rank() const noexcept {
  const std::uint16_t* held_ranks = held_here();
  for (auto r = static_cast<std::size_t>(rank_); r <= static_cast<std::size_t>(lock_rank::leaf); ++r) {
    bool same_channel = rank_ == lock_rank::channel && r == static_cast<std::size_t>(rank_);
    WEFT_ASSERT(held_ranks[r] == 0 || same_channel, "lock of rank {} taken while rank {} is held",
                static_cast<int>(rank_), r);
  }
}

void lock::note_acquired() const noexcept { ++held_here()[static_cast<std::size_t>(rank_)]; }

void lock::note_released() const noexcept {
  WEFT_ASSERT(held_here()[static_cast<std::size_t>(rank_)] > 0, "lock of rank {} released by a thread without it",
              static_cast<int>(rank_));
  --held_here()[static_cast<std::size_t>(rank_)];
}

#endif

}  // namespace weft::rt
