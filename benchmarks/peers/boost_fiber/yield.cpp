#include <boost/fiber/operations.hpp>

#include "benchmarks/peers/boost_fiber/fibers.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

void yield(bench::job& j) {
  j.measure(j.count(4'000'000), [](std::size_t n) {
    bench::in_fibers(8, [n] {
      for (std::size_t i = 0; i < n / 8; ++i) boost::this_fiber::yield();
    });
  });
}

const bench::workloads here{
    {"yield", yield},
};

}  // namespace
