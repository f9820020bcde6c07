// The second generation, Go 1.10 to 1.13: 64 heaps, of which each P uses one. Ps seldom wait for each other. But each
// heap has a timerproc, which has to get a P from somebody else before it can run.
#pragma once

#include <array>

#include "benchmarks/timer_generations/served_heap.hpp"

namespace generations {

class heaps64 {
 public:
  static constexpr const char* name = "heaps64";
  using timer = served_timer;

  explicit heaps64(unsigned) {}

  static timer* make(timer_function function, void* arg) { return new timer{function, arg}; }
  void add(unsigned p, timer* t, nanos when) { heaps_[p % heaps_.size()].add(t, when); }
  bool stop(timer* t) { return t->heap && t->heap->stop(t); }

  // Moves the timer to the heap of the P that resets it.
  bool reset(unsigned p, timer* t, nanos when) {
    bool was_armed = stop(t);
    add(p, t, when);
    return was_armed;
  }

  nanos fire(unsigned, nanos) { return 0; }  // the timerprocs run the due timers
  static void drop(timer* t) { delete t; }

 private:
  std::array<served_heap, 64> heaps_;
};

}  // namespace generations
