// 10^6 goroutines wait for a channel to be closed: how long it takes to start one, how much memory a parked one takes,
// and how fast all wake.
#include <weft/chan.hpp>
#include <weft/runtime.hpp>
#include <weft/sync.hpp>

#include <atomic>

#include "benchmarks/support/bench.hpp"

namespace {

void wake_all(bench::job& j) {
  std::size_t n = j.count_in_memory(1'000'000, 12 * 1024);
  weft::chan<void> gate;
  weft::wait_group wg;
  std::atomic<std::size_t> arrived{0};
  std::size_t before = bench::resident_bytes();
  std::int64_t started = bench::now_ns();
  for (std::size_t i = 0; i < n; ++i) {
    wg.go([&] {
      arrived.fetch_add(1, std::memory_order_relaxed);
      gate.recv();
    });
  }
  while (arrived.load() < n) weft::yield();
  weft::yield();  // so that the last ones park
  j.note("created_ns", static_cast<double>(bench::now_ns() - started) / static_cast<double>(n));
  j.note("bytes_per_parked", static_cast<double>(bench::resident_bytes() - before) / static_cast<double>(n));
  j.measure_once(n, [&] {
    gate.close();
    wg.wait();
  });
}

const bench::workloads here{
    {"wake_all", wake_all},
};

}  // namespace
