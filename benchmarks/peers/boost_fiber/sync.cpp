#include <boost/fiber/mutex.hpp>

#include <mutex>

#include "benchmarks/peers/boost_fiber/fibers.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

void mutex_64(bench::job& j) {
  j.measure(j.count(2'000'000, 64), [](std::size_t n) {
    boost::fibers::mutex m;
    std::size_t counter = 0;
    bench::in_fibers(64, [&] {
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
