// std::thread: a thread in place of each goroutine, on as many CPUs as the other programs have Ps. The counts are
// smaller, since threads cost more.
#include <sched.h>

#include <stdexcept>

#include "benchmarks/support/bench.hpp"

void bench::enter(job& j, void (*run)(job&)) {
  cpu_set_t all, some;
  if (sched_getaffinity(0, sizeof all, &all) < 0) throw std::runtime_error("no affinity");
  CPU_ZERO(&some);
  for (std::size_t cpu = 0, left = j.procs(); cpu < CPU_SETSIZE && left > 0; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_SET(cpu, &some);
    --left;
  }
  if (sched_setaffinity(0, sizeof some, &some) < 0) throw std::runtime_error("no affinity");
  run(j);
}
