// The first generation, Go up to 1.9: one heap for all Ps.
#pragma once

#include "benchmarks/timer_generations/served_heap.hpp"

namespace generations {

class global_heap {
 public:
  static constexpr const char* name = "global_heap";
  using timer = served_timer;

  explicit global_heap(unsigned) {}

  static timer* make(timer_function function, void* arg) { return new timer{function, arg}; }
  void add(unsigned, timer* t, nanos when) { heap_.add(t, when); }
  bool stop(timer* t) { return heap_.stop(t); }

  bool reset(unsigned, timer* t, nanos when) {
    bool was_armed = heap_.stop(t);
    heap_.add(t, when);
    return was_armed;
  }

  nanos fire(unsigned, nanos) { return 0; }  // the timerproc runs the due timers
  static void drop(timer* t) { delete t; }

 private:
  served_heap heap_;
};

}  // namespace generations
