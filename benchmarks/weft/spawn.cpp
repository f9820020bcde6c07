// Starting goroutines and waiting for their end, one by one and 1000 at a time.
#include <weft/sync.hpp>
#include <weft/task.hpp>

#include "benchmarks/support/bench.hpp"

namespace {

constexpr std::size_t batch = 1000;

void spawn_join(bench::job& j) {
  j.measure(j.count(1'000'000), [](std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) weft::spawn([] {}).join();
  });
}

void spawn_batch(bench::job& j) {
  j.measure(j.count(2'000'000, batch), [](std::size_t n) {
    std::vector<weft::task<void>> tasks;
    tasks.reserve(batch);
    for (std::size_t i = 0; i < n; i += batch) {
      for (std::size_t k = 0; k < batch; ++k) tasks.push_back(weft::spawn([] {}));
      for (auto& t : tasks) t.join();
      tasks.clear();
    }
  });
}

// One producer that never waits: the other Ps have nothing to do but what they take from it.
void fan_out(bench::job& j) {
  j.measure(j.count(1'000'000), [](std::size_t n) {
    weft::wait_group wg;
    for (std::size_t i = 0; i < n; ++i) wg.go([] {});
    wg.wait();
  });
}

void wait_group(bench::job& j) {
  j.measure(j.count(2'000'000, batch), [](std::size_t n) {
    weft::wait_group wg;
    for (std::size_t i = 0; i < n; i += batch) {
      for (std::size_t k = 0; k < batch; ++k) wg.go([] {});
      wg.wait();
    }
  });
}

const bench::workloads here{
    {"fan_out", fan_out},
    {"spawn_join", spawn_join},
    {"spawn_batch", spawn_batch},
    {"wait_group", wait_group},
};

}  // namespace
