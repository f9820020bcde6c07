// Eight goroutines that do nothing but yield: the bare cost of switching from one to the next.
#include <weft/runtime.hpp>
#include <weft/sync.hpp>

#include "benchmarks/support/bench.hpp"

namespace {

void yield(bench::job& j) {
  j.measure(j.count(4'000'000), [](std::size_t n) {
    weft::wait_group wg;
    for (int g = 0; g < 8; ++g) {
      wg.go([n] {
        for (std::size_t i = 0; i < n / 8; ++i) weft::yield();
      });
    }
    wg.wait();
  });
}

const bench::workloads here{
    {"yield", yield},
};

}  // namespace
