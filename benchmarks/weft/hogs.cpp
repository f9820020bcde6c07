// Eight goroutines that compute and never call the runtime, and beside them one that wants to be on time.
#include <weft/go.hpp>
#include <weft/time.hpp>

#include <atomic>

#include "benchmarks/support/bench.hpp"
#include "benchmarks/weft/connections.hpp"

namespace {

using namespace std::chrono_literals;

class hogs {
 public:
  hogs() {
    for (int i = 0; i < 8; ++i) {
      weft::go([this] {
        while (!stop_.load(std::memory_order_relaxed)) bench::keep(0);
        ended_.fetch_add(1);
      });
    }
    weft::sleep(20ms);  // all have begun
  }
  ~hogs() {
    stop_ = true;
    while (ended_ < 8) weft::sleep(1ms);
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> ended_{0};
};

// Calls f, which returns a time in ns, until the period is over, and at least five times.
template <class F>
void sample(bench::job& j, F f) {
  hogs computing;
  bench::samples times;
  for (auto end = bench::clock::now() + j.period(); times.size() < 5 || bench::clock::now() < end;) times.add(f());
  j.report(times);
}

// How late sleep(1 ms) comes back.
void hogs_sleep(bench::job& j) {
  sample(j, [] {
    std::int64_t due = bench::now_ns() + 1'000'000;
    weft::sleep(1ms);
    return bench::now_ns() - due;
  });
}

// How long a message there and back takes, one every millisecond.
void hogs_echo(bench::job& j) {
  auto stream = weft::net::tcp_stream::connect(bench::start_echo_server());
  sample(j, [&] {
    weft::sleep(1ms);
    std::int64_t start = bench::now_ns();
    bench::echo(stream);
    return bench::now_ns() - start;
  });
}

const bench::workloads here{
    {"hogs_sleep", hogs_sleep},
    {"hogs_echo", hogs_echo},
};

}  // namespace
