#include <weft/runtime.hpp>

#include "benchmarks/support/bench.hpp"

void bench::enter(job& j, void (*run)(job&)) {
  weft::run([&] { run(j); }, {.procs = j.procs()});
}
