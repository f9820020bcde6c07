// The low-level lock: held for a few instructions (exceptions: lock.cpp), never across a suspension.
//
// A lock is one word, free or held. Taking it is a locked instruction; giving it back is a plain store ("asymmetric
// unlock", lock.cpp). A thread that finds the lock held spins briefly, but not while a sleeper waits to be woken, and
// then sleeps in a queue that is found by the lock's address. With many contenders one spins, one is on its way and the
// others are asleep, so the lock does not collapse. Ranks say in which order locks may be taken; builds with
// WEFT_CHECKS verify it. While only one P runs, locks that only goroutines take need no locked instruction at all
// (goroutine_lock).
#pragma once

#include "runtime/atomic.hpp"
#include "runtime/config.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

// Ranks are counted per thread, but the threads of interleaving tests are not real ones.
#if WEFT_CHECKS && !defined(WEFT_INTERLEAVE)
#define WEFT_LOCK_RANKS 1
#else
#define WEFT_LOCK_RANKS 0
#endif

namespace weft::rt {

// A thread may take a lock only if its rank is greater than every rank it holds. `channel` is the exception:
// select locks several channels, in the order of their addresses.
enum class lock_rank : std::uint8_t {
  stop_the_world,
  context,  // closes channels
  channel,
  sync,
  poll_desc,
  timers,
  room,
  sched,
  stacks,
  leaf,  // holds nothing further
};

// Counts the locks at addresses of one kind whose first sleeper is not on its way (lock.cpp). `always`: there is no
// membarrier, or that is not known yet.
struct lock_bell {
  static constexpr std::uint32_t always = 1u << 31;
  atomic<std::uint32_t> rings{always};
};
inline constexpr unsigned lock_bell_bits = 8;
extern std::array<lock_bell, std::size_t{1} << lock_bell_bits> lock_bells;

class lock {
 public:
#if WEFT_LOCK_RANKS
  explicit constexpr lock(lock_rank rank) noexcept : rank_(rank) {}
#else
  explicit constexpr lock(lock_rank) noexcept {}
#endif
  lock(const lock&) = delete;
  lock& operator=(const lock&) = delete;

  void acquire_lock() noexcept {
    check_rank();
    if (WEFT_UNLIKELY(!take())) acquire_slow();
    note_acquired();
  }

  bool try_acquire_lock() noexcept {
    if (!take()) return false;
    note_acquired();
    return true;
  }

  void release_lock() noexcept {
    if (WEFT_UNLIKELY(give_back())) wake_sleeper();
  }

  // Releases the lock in two steps. True: wake_sleeper() must follow.
  [[nodiscard]] bool give_back() noexcept {
    note_released();
    const lock_bell& bell = lock_bells[kind()];
    // release: the next holder's acquire sees what was written under the lock. After this store the lock may be gone.
    word_.store(free_word, release);                      // U1
    std::atomic_signal_fence(std::memory_order_seq_cst);  // U2
    return bell.rings.load(relaxed) != 0;                 // U3
  }
  WEFT_NOINLINE void wake_sleeper() noexcept;

 protected:
  // Takes the lock by a plain store. No other thread may be able to take it now.
  bool take_plainly() noexcept {
    if (word_.load(relaxed) != free_word) return false;
    check_rank();
    word_.store(held, relaxed);
    note_acquired();
    return true;
  }

 private:
  static constexpr std::uint32_t free_word = 0, held = 1;

  bool take() noexcept {
    std::uint32_t want = free_word;
    return word_.compare_exchange_strong(want, held, acquire, relaxed);
  }
  std::size_t kind() const noexcept {
    return (static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(this)) * 0x9E3779B1u) >> (32 - lock_bell_bits);
  }

  bool spin() noexcept;
  WEFT_NOINLINE void acquire_slow() noexcept;

#if WEFT_LOCK_RANKS
  void check_rank() const noexcept;
  void note_acquired() const noexcept;
  void note_released() const noexcept;
#else
  void check_rank() const noexcept {}
  void note_acquired() const noexcept {}
  void note_released() const noexcept {}
#endif

  atomic<std::uint32_t> word_{free_word};
#if WEFT_LOCK_RANKS
  lock_rank rank_;
#endif
};

// True while all threads that take a goroutine_lock hold the same P, because all other Ps idle, and no plain thread
// takes one (sched/alone.cpp).
inline constinit atomic<bool> alone{false};

// A lock that is taken only inside the runtime, by a thread that holds a P or by a plain thread, and that is given back
// before the P is. While `alone`, taking it is a plain store. If it is held all the same, the thread waits for it as
// for any other lock.
class goroutine_lock : public lock {
 public:
  using lock::lock;

  void acquire_lock() noexcept {
    if (!take_alone()) lock::acquire_lock();
  }
  bool try_acquire_lock() noexcept { return take_alone() || lock::try_acquire_lock(); }

 private:
  bool take_alone() noexcept { return alone.load(relaxed) && take_plainly(); }
};

template <class Lock>
class [[nodiscard]] lock_guard {
 public:
  explicit lock_guard(Lock& l) noexcept : lock_(l) { lock_.acquire_lock(); }
  ~lock_guard() { lock_.release_lock(); }
  lock_guard(const lock_guard&) = delete;
  lock_guard& operator=(const lock_guard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace weft::rt
