// 64 goroutines that all want one mutex.
#include <weft/sync.hpp>

#include <mutex>

#include "benchmarks/support/bench.hpp"

namespace {

void mutex_64(bench::job& j) {
  j.measure(j.count(10'000'000, 64), [](std::size_t n) {
    weft::mutex m;
    weft::wait_group wg;
    std::size_t counter = 0;
    for (int g = 0; g < 64; ++g) {
      wg.go([&] {
        for (std::size_t i = 0; i < n / 64; ++i) {
          std::lock_guard lock(m);
          ++counter;
        }
      });
    }
    wg.wait();
    bench::keep(counter);
  });
}

const bench::workloads here{
    {"mutex_64", mutex_64},
};

}  // namespace
