// Where a P finds what became ready: the function of a timer puts a letter here, on whatever thread it runs, and wakes
// the P's thread if that sleeps.
#pragma once

#include "runtime/futex.hpp"

namespace generations {

namespace rt = weft::rt;

class inbox;

struct letter {
  inbox* to = nullptr;
  rt::nanos due = 0;  // when it was to be delivered
  letter* next = nullptr;
};

class alignas(rt::cache_line) inbox {
 public:
  // The letter belongs to the P as soon as it is in.
  void put(letter* l) noexcept {
    l->next = first_.load(rt::relaxed);
    // seq_cst: put and look whether the P sleeps; sleep_until says that it sleeps and looks for letters.
    while (!first_.compare_exchange_weak(l->next, l, rt::seq_cst, rt::relaxed)) {}
    if (asleep_.load(rt::seq_cst) == 1 && asleep_.exchange(0, rt::seq_cst) == 1) rt::futex_wake(&asleep_, 1);
  }

  // By the P, as all that follows. acquire: what was written before put.
  letter* take_all() noexcept { return first_.exchange(nullptr, rt::acquire); }

  // Returns at the latest when there is a letter or the time has come; it may return early.
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
