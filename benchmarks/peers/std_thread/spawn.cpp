#include "benchmarks/peers/std_thread/threads.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

constexpr std::size_t batch = 1000;

void spawn_join(bench::job& j) {
  j.measure(j.count(20'000), [](std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) std::thread([] {}).join();
  });
}

void spawn_batch(bench::job& j) {
  j.measure(j.count(20'000, batch), [](std::size_t n) {
    for (std::size_t i = 0; i < n; i += batch) bench::in_threads(batch, [] {});
  });
}

const bench::workloads here{
    {"spawn_join", spawn_join},
    {"spawn_batch", spawn_batch},
};

}  // namespace
