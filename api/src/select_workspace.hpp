// What a select works with: its channels, locked all together, and the random order in which it looks at them.
#pragma once

#include "api/src/chan_core.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace weft::detail {

inline constexpr std::size_t cases_on_stack = 8;

// The arrays of one select; on the stack for the usual number of cases.
class workspace {
 public:
  [[gnu::always_inline]] explicit workspace(std::size_t n)
      : waiters(small_waiters_), locks(small_locks_), order(small_order_) {
    if (n <= cases_on_stack) return;
    large_waiters_ = std::make_unique<waiter[]>(n);
    large_locks_ = std::make_unique<chan_core*[]>(n);
    large_order_ = std::make_unique<std::uint32_t[]>(n);
    waiters = large_waiters_.get();
    locks = large_locks_.get();
    order = large_order_.get();
  }

  // The locks to take: in the order of their addresses, and each once.
  [[gnu::always_inline]] void add_locks_of(const select_op* ops, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if (ops[i].chan) locks[lock_count++] = ops[i].chan;
    }
    if (lock_count > cases_on_stack) {
      std::sort(locks, locks + lock_count, std::less<>());
    } else {
      for (std::size_t i = 1; i < lock_count; ++i) {  // few and often two: insertion sort
        chan_core* c = locks[i];
        std::size_t j = i;
        for (; j > 0 && std::less<>()(c, locks[j - 1]); --j) locks[j] = locks[j - 1];
        locks[j] = c;
      }
    }
    // Equal addresses are adjacent.
    lock_count = static_cast<std::size_t>(std::unique(locks, locks + lock_count) - locks);
  }

  void lock_all() noexcept {
    for (std::size_t i = 0; i < lock_count; ++i) locks[i]->mutex.acquire_lock();
  }

  // As soon as the last lock is released, the goroutine may go on and destroy this object. So locks[0] is read first
  // and released last.
  void unlock_all() noexcept {
    std::size_t n = lock_count;
    chan_core* last = n > 0 ? locks[0] : nullptr;
    for (std::size_t i = n; i-- > 1;) locks[i]->mutex.release_lock();
    if (last) last->mutex.release_lock();
  }

  waiter* waiters;
  chan_core** locks;
  std::uint32_t* order;
  std::size_t lock_count = 0;

 private:
  waiter small_waiters_[cases_on_stack];
  chan_core* small_locks_[cases_on_stack];
  std::uint32_t small_order_[cases_on_stack];
  std::unique_ptr<waiter[]> large_waiters_;
  std::unique_ptr<chan_core*[]> large_locks_;
  std::unique_ptr<std::uint32_t[]> large_order_;
};

inline rt::random_source& randomness(rt::M* m) noexcept {
  if (m) return m->random;
  static thread_local rt::random_source mine(static_cast<std::uint64_t>(rt::nanotime()));
  return mine;
}

// The inside-out Fisher-Yates shuffle. One random number serves four steps: each step multiplies it by the size of the
// range, takes the high word as its index, and leaves the low word, which is as random, to the next step.
[[gnu::always_inline]] inline void shuffle(std::uint32_t* order, std::size_t n, rt::random_source& random) noexcept {
  std::uint64_t place = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (i % 4 == 0) place = random.next();
    rt::unsigned_128 share = static_cast<rt::unsigned_128>(place) * (i + 1);
    auto j = static_cast<std::uint32_t>(share >> 64);
    place = static_cast<std::uint64_t>(share);
    if (j != i) order[i] = order[j];
    order[j] = i;
  }
}

}  // namespace weft::detail
