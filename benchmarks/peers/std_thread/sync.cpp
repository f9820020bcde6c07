#include <mutex>

#include "benchmarks/peers/std_thread/threads.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

void mutex_64(bench::job& j) {
  j.measure(j.count(4'000'000, 64), [](std::size_t n) {
    std::mutex m;
    std::size_t counter = 0;
    bench::in_threads(64, [&] {
      for (std::size_t i = 0; i < n / 64; ++i) {
        std::lock_guard lock(m);
        ++counter;
      }
    });
    bench::keep(counter);
  });
}

const bench::workloads here{
    {"mutex_64", mutex_64},
};

}  // namespace
