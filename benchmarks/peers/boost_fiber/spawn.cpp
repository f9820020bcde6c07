#include "benchmarks/peers/boost_fiber/fibers.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

constexpr std::size_t batch = 1000;

void spawn_join(bench::job& j) {
  j.measure(j.count(500'000), [](std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) bench::start([] {}, boost::fibers::launch::dispatch).join();
  });
}

// Starts a tenth of what the other peers start.
void fan_out(bench::job& j) {
  j.measure(j.count(100'000), [](std::size_t n) {
    std::vector<boost::fibers::fiber> all;
    all.reserve(n);
    for (std::size_t i = 0; i < n; ++i) all.push_back(bench::start_small([] {}));
    for (auto& f : all) f.join();
  });
}

void spawn_batch(bench::job& j) {
  j.measure(j.count(200'000, batch), [](std::size_t n) {
    for (std::size_t i = 0; i < n; i += batch) bench::in_fibers(batch, [] {});
  });
}

long fib(int n) {
  if (n < 2) return n;
  long left = 0;
  auto child = bench::start_small([&left, n] { left = fib(n - 1); });
  long right = fib(n - 2);
  child.join();
  return left + right;
}

void forkjoin(bench::job& j) {
  int n = 2;
  std::size_t spawned = 1;
  for (std::size_t before = 0; spawned < j.count(100'000); ++n) {
    before = std::exchange(spawned, before + spawned + 1);
  }
  j.measure_once(spawned, [=] { bench::keep(fib(n)); });
}

const bench::workloads here{
    {"fan_out", fan_out},
    {"spawn_join", spawn_join},
    {"spawn_batch", spawn_batch},
    {"fib", forkjoin},
};

}  // namespace
