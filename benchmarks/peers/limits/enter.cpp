// Limits: what the machine itself takes for the least that a workload needs, on one thread.
#include "benchmarks/support/bench.hpp"

void bench::enter(job& j, void (*run)(job&)) { run(j); }
