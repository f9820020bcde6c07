// Weft's low-level lock, counted: how often it was taken, and how often whoever wanted it had to wait.
//
// Acquisitions are counted where they are asked for, by each thread for itself. Waiting is counted in the lock's slow
// path, which the linker leads through here (--wrap): so it counts for locks within the library, too, and a lock that
// is free costs nothing more.
#pragma once

#include <cstdint>

#include "runtime/config.hpp"
#include "runtime/lock.hpp"

namespace generations {

namespace rt = weft::rt;

struct wait_totals {
  std::uint64_t acquired = 0;  // locks taken
  std::uint64_t waited = 0;    // of these: not free at the first attempt
  std::uint64_t yielded = 0;   // a look at a timer in a state that another thread is about to end
};

// Of all threads, up to now.
wait_totals total_waits();

// Written by one thread, read by any.
struct alignas(rt::cache_line) thread_waits {
  rt::atomic<std::uint64_t> acquired{0}, waited{0}, yielded{0};
};

namespace detail {

inline constinit thread_local thread_waits* mine = nullptr;
thread_waits& register_thread();

}  // namespace detail

inline thread_waits& my_waits() { return detail::mine ? *detail::mine : detail::register_thread(); }

// relaxed, and not a fetch_add: only this thread writes it.
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
