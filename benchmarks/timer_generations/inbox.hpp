// The inbox of a P, where it finds what became ready. A timer's function puts a letter here, on whatever thread it
// runs, and wakes the P's thread if that sleeps.
#pragma once

#include "runtime/futex.hpp"

namespace generations {

namespace rt = weft::rt;

class inbox;

struct letter {
  inbox* to = nullptr;
  rt::nanos due = 0;  // when the timer was due
  letter* next = nullptr;
};

class alignas(rt::cache_line) inbox {
 public:
  // The letter belongs to the P as soon as it is in the inbox.
  void put(letter* l) noexcept {
    l->next = first_.load(rt::relaxed);
    // seq_cst: put stores the letter and then looks whether the P sleeps; sleep_until says that the P sleeps and then
    // looks for letters. So at least one of them sees the other.
    while (!first_.compare_exchange_weak(l->next, l, rt::seq_cst, rt::relaxed)) {}
    if (asleep_.load(rt::seq_cst) == 1 && asleep_.exchange(0, rt::seq_cst) == 1) rt::futex_wake(&asleep_, 1);
  }

  // Called by the P, as is all that follows. acquire: for what was written before put().
  letter* take_all() noexcept { return first_.exchange(nullptr, rt::acquire); }

  // Returns when there is a letter or the deadline has come, at the latest; it may return early.
  void sleep_until(rt::nanos deadline) noexcept {
    asleep_.store(1, rt::seq_cst);
    if (!first_.load(rt::seq_cst)) rt::futex_wait_until(&asleep_, 1, deadline);
    asleep_.store(0, rt::relaxed);
  }

 private:
  rt::atomic<letter*> first_{nullptr};
  rt::atomic<std::uint32_t> asleep_{0};
};

}  // namespace generations
