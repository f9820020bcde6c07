#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/mutex.hpp>
#include <boost/fiber/operations.hpp>

#include <atomic>
#include <mutex>

#include "benchmarks/peers/boost_fiber/fibers.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

// Starts a tenth of what the other peers start.
void wake_all(bench::job& j) {
  std::size_t n = j.count_in_memory(100'000, 20 * 1024);
  boost::fibers::mutex m;
  boost::fibers::condition_variable opened;
  bool open = false;
  std::atomic<std::size_t> arrived{0};
  std::vector<boost::fibers::fiber> all;
  all.reserve(n);
  std::size_t before = bench::resident_bytes();
  std::int64_t started = bench::now_ns();
  for (std::size_t i = 0; i < n; ++i) {
    all.push_back(bench::start_small([&] {
      std::unique_lock lock(m);
      arrived.fetch_add(1);
      opened.wait(lock, [&] { return open; });
    }));
  }
  while (arrived.load() < n) boost::this_fiber::yield();
  j.note("created_ns", static_cast<double>(bench::now_ns() - started) / static_cast<double>(n));
  j.note("bytes_per_parked", static_cast<double>(bench::resident_bytes() - before) / static_cast<double>(n));
  j.measure_once(n, [&] {
    {
      std::lock_guard lock(m);
      open = true;
    }
    opened.notify_all();
    for (auto& f : all) f.join();
  });
}

const bench::workloads here{
    {"wake_all", wake_all},
};

}  // namespace
