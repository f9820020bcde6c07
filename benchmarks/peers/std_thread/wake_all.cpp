#include <atomic>
#include <condition_variable>
#include <mutex>

#include "benchmarks/peers/std_thread/threads.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

// Starts a two-hundredth of what the other peers start. The memory counted here leaves out what the kernel keeps for a
// thread.
void wake_all(bench::job& j) {
  const std::size_t n = j.count(5000);
  std::mutex m;
  std::condition_variable opened;
  bool open = false;
  std::atomic<std::size_t> arrived{0};
  std::vector<std::thread> all;
  all.reserve(n);
  std::size_t before = bench::resident_bytes();
  std::int64_t started = bench::now_ns();
  for (std::size_t i = 0; i < n; ++i) {
    all.emplace_back([&] {
      std::unique_lock lock(m);
      arrived.fetch_add(1);
      opened.wait(lock, [&] { return open; });
    });
  }
  while (arrived.load() < n) std::this_thread::yield();
  j.note("created_ns", static_cast<double>(bench::now_ns() - started) / static_cast<double>(n));
  j.note("bytes_per_parked", static_cast<double>(bench::resident_bytes() - before) / static_cast<double>(n));
  j.measure_once(n, [&] {
    {
      std::lock_guard lock(m);
      open = true;
    }
    opened.notify_all();
    for (auto& t : all) t.join();
  });
}

const bench::workloads here{
    {"wake_all", wake_all},
};

}  // namespace
