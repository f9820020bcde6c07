// What is measured in a run, and the line of JSON that reports it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/timer_generations/counted_lock.hpp"
#include "runtime/clock.hpp"

namespace generations {

// The clocks and counters of the whole process, all threads.
struct reading {
  rt::nanos wall = 0;
  rt::nanos cpu = 0;
  long switches = 0;  // between threads, voluntary or not
  wait_totals locks;

  static reading now();
};

struct job {
  std::string generation;
  std::string workload;
  std::size_t timers = 0;
  unsigned procs = 0;
  double scale = 1;

  // Returns a number of operations: `full` at scale 1, in proportion at other scales, at least `least`.
  std::size_t count(std::size_t full, std::size_t least) const;
};

struct outcome {
  reading begin, end;
  std::size_t ops = 0;
  std::vector<rt::nanos> late;  // how late each firing was
};

void print(const job& j, outcome& o);

}  // namespace generations
