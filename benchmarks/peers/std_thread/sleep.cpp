// Sleeping, alone and beside eight threads that compute. The timer slack is what every thread has by default, 50 us.
#include <atomic>

#include "benchmarks/peers/std_thread/sockets.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

using namespace std::chrono_literals;

class hogs {
 public:
  hogs() {
    for (int i = 0; i < 8; ++i) {
      all_.emplace_back([this] {
        while (!stop_.load(std::memory_order_relaxed)) bench::keep(0);
      });
    }
    std::this_thread::sleep_for(20ms);  // until all have begun
  }
  ~hogs() {
    stop_ = true;
    for (auto& t : all_) t.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> all_;
};

// Calls f until the period is over, and at least five times. f returns a time in ns.
template <class F>
void sample(bench::job& j, F f) {
  bench::samples times;
  j.start();
  for (auto end = bench::clock::now() + j.period(); times.size() < 5 || bench::clock::now() < end;) times.add(f());
  j.stop(times.size());
  j.report(times);
}

void lateness(bench::job& j, std::chrono::nanoseconds d) {
  sample(j, [d] {
    std::int64_t due = bench::now_ns() + d.count();
    std::this_thread::sleep_for(d);
    return bench::now_ns() - due;
  });
}

void sleepers_short(bench::job& j) {
  constexpr std::size_t n = 1000;
  std::vector<bench::samples> late(n);
  std::atomic<std::size_t> sleeps{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < n; ++i) {
    threads.emplace_back([&, i, d = std::chrono::nanoseconds(5ms + i * 7us)] {
      while (!stop.load(std::memory_order_relaxed)) {
        std::int64_t due = bench::now_ns() + d.count();
        std::this_thread::sleep_for(d);
        sleeps.fetch_add(1, std::memory_order_relaxed);
        if (i % 10 == 0) late[i].add(bench::now_ns() - due);
      }
    });
  }
  std::this_thread::sleep_for(200ms);
  j.start();
  std::size_t before = sleeps;
  std::this_thread::sleep_for(j.period());
  j.stop(sleeps - before);
  stop = true;
  for (auto& t : threads) t.join();
  bench::samples all;
  for (auto& s : late) all.add(s);
  j.percentiles(all);
}

void hogs_sleep(bench::job& j) {
  hogs computing;
  lateness(j, 1ms);
}

void hogs_echo(bench::job& j) {
  bench::echo_connections one(1);
  hogs computing;
  sample(j, [&] {
    std::this_thread::sleep_for(1ms);
    std::int64_t start = bench::now_ns();
    bench::echo(one.clients()[0]);
    return bench::now_ns() - start;
  });
}

const bench::workloads here{
    {"hogs_sleep", hogs_sleep},
    {"hogs_echo", hogs_echo},
    {"late_50us", [](bench::job& j) { lateness(j, 50us); }},
    {"late_200us", [](bench::job& j) { lateness(j, 200us); }},
    {"late_1ms", [](bench::job& j) { lateness(j, 1ms); }},
    {"late_5ms", [](bench::job& j) { lateness(j, 5ms); }},
    {"sleepers_short", sleepers_short},
};

}  // namespace
