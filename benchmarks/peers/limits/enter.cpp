// Limits: how long the machine itself takes, on one thread, for the least that a workload cannot do without.
#include "benchmarks/support/bench.hpp"

void bench::enter(job& j, void (*run)(job&)) { run(j); }
