#include "benchmarks/peers/std_thread/threads.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

void yield(bench::job& j) {
  j.measure(j.count(1'000'000), [](std::size_t n) {
    bench::in_threads(8, [n] {
      for (std::size_t i = 0; i < n / 8; ++i) std::this_thread::yield();
    });
  });
}

const bench::workloads here{
    {"yield", yield},
};

}  // namespace
