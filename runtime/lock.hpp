// The low-level lock: held for a few instructions (exceptions: lock.cpp), never across a suspension.
//
// A futex lock, one word with three values: free, held, held with sleepers. A thread that finds it held spins briefly,
// but only while nobody sleeps on it: with many contenders one spins and the others are asleep, so the lock
// does not collapse. Ranks say in which order locks may be taken; builds with WEFT_CHECKS verify it.
#pragma once

#include "runtime/config.hpp"
#include "runtime/futex.hpp"

#include <cstdint>

// Counted per thread; those of interleaving tests are none.
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
    std::uint32_t want = free_word;
    check_rank();
    if (WEFT_UNLIKELY(!word_.compare_exchange_strong(want, held, acquire, relaxed))) acquire_slow();
    note_acquired();
  }

  bool try_acquire_lock() noexcept {
    std::uint32_t want = free_word;
    if (!word_.compare_exchange_strong(want, held, acquire, relaxed)) return false;
    note_acquired();
    return true;
  }

  void release_lock() noexcept {
    if (WEFT_UNLIKELY(give_back())) wake_sleeper();
  }

  // The same in two steps. True: wake_sleeper() has to follow.
  // release: what was written under the lock is seen by the next holder's acquire.
  [[nodiscard]] bool give_back() noexcept {
    note_released();
    return word_.exchange(free_word, release) == held_with_sleepers;
  }
  void wake_sleeper() noexcept { futex_wake(&word_, 1); }

 private:
  static constexpr std::uint32_t free_word = 0, held = 1, held_with_sleepers = 2;

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

class [[nodiscard]] lock_guard {
 public:
  explicit lock_guard(lock& l) noexcept : lock_(l) { lock_.acquire_lock(); }
  ~lock_guard() { lock_.release_lock(); }
  lock_guard(const lock_guard&) = delete;
  lock_guard& operator=(const lock_guard&) = delete;

 private:
  lock& lock_;
};

}  // namespace weft::rt
