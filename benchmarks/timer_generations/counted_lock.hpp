// Weft's low-level lock, with counters: how often it was taken, and how often a thread had to wait for it.
//
// Acquisitions are counted where the lock is asked for; each thread has counters of its own. Waits are counted in the
// lock's slow path, which the linker routes through counted_lock.cpp (--wrap). So waits for locks within the library
// are counted, too, and taking a free lock costs nothing more.
#pragma once

#include <cstdint>

#include "runtime/config.hpp"
#include "runtime/lock.hpp"

namespace generations {

namespace rt = weft::rt;

struct wait_totals {
  std::uint64_t acquired = 0;  // locks taken
  std::uint64_t waited = 0;    // of these, not free at the first attempt
  std::uint64_t yielded = 0;   // times that a thread found a timer in a state that another thread was about to end
};

// Returns the sums over all threads, up to now.
wait_totals total_waits();

// The counters of one thread. Only that thread writes them; any thread may read them.
struct alignas(rt::cache_line) thread_waits {
  rt::atomic<std::uint64_t> acquired{0}, waited{0}, yielded{0};
};

namespace detail {

inline constinit thread_local thread_waits* mine = nullptr;
thread_waits& register_thread();

}  // namespace detail

inline thread_waits& my_waits() { return detail::mine ? *detail::mine : detail::register_thread(); }

// Relaxed and without fetch_add, since only this thread writes the counter.
inline void count(rt::atomic<std::uint64_t>& n) { n.store(n.load(rt::relaxed) + 1, rt::relaxed); }

class counted_lock {
 public:
  explicit counted_lock(rt::lock_rank rank = rt::lock_rank::timers) : lock_(rank) {}

  void acquire_lock() {
    count(my_waits().acquired);
    lock_.acquire_lock();
  }
  void release_lock() { lock_.release_lock(); }

 private:
  rt::lock lock_;
};

}  // namespace generations
