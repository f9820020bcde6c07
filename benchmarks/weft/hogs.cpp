// Hogs are goroutines that compute and never call the runtime. Eight or ten thousand of them run beside a goroutine
// that wants to be on time.
#include <unistd.h>
#include <weft/chan.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
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
    weft::sleep(20ms);  // until all have begun
  }
  ~hogs() {
    stop_ = true;
    while (ended_ < 8) weft::sleep(1ms);
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> ended_{0};
};

// Calls f beside eight hogs until the period is over, and at least five times. f returns a time in ns.
template <class F>
void sample(bench::job& j, F f) {
  hogs computing;
  bench::samples times;
  for (auto end = bench::clock::now() + j.period(); times.size() < 5 || bench::clock::now() < end;) times.add(f());
  j.report(times);
}

// How late sleep(1 ms) returns.
void hogs_sleep(bench::job& j) {
  sample(j, [] {
    std::int64_t due = bench::now_ns() + 1'000'000;
    weft::sleep(1ms);
    return bench::now_ns() - due;
  });
}

// How long an echo takes, at one every millisecond.
void hogs_echo(bench::job& j) {
  auto stream = weft::net::tcp_stream::connect(bench::start_echo_server());
  sample(j, [&] {
    weft::sleep(1ms);
    std::int64_t start = bench::now_ns();
    bench::echo(stream);
    return bench::now_ns() - start;
  });
}

// How late a 10 ms ticker is beside 10,000 goroutines that compute and 10,000 that block in read().
void hogs_many(bench::job& j) {
  constexpr int each = 10000;
  int fd[2];
  if (::pipe(fd) != 0) return;
  std::atomic<bool> stop{false};
  std::atomic<int> ended{0};
  weft::ticker tick(10ms);
  for (int i = 0; i < each; ++i) {
    weft::go([&] {
      while (!stop.load(std::memory_order_relaxed)) bench::keep(0);
      ended.fetch_add(1);
    });
    weft::go([&] {
      char c;
      bench::keep(::read(fd[0], &c, 1));
      ended.fetch_add(1);
    });
  }
  bench::samples late;
  auto expected = *tick.channel().recv() + 10ms;
  for (auto end = bench::clock::now() + 4 * j.period(); late.size() < 5 || bench::clock::now() < end;) {
    auto due = *tick.channel().recv();
    auto now = bench::clock::now();
    // A ticker leaves out a tick if the one before has not been received. Such a tick is late until the next one comes.
    for (; expected <= due; expected += 10ms) late.add(std::chrono::nanoseconds(now - expected).count());
  }
  j.note("threads", static_cast<double>(weft::runtime_stats().threads));
  stop = true;
  ::close(fd[1]);
  while (ended < 2 * each) weft::sleep(1ms);
  ::close(fd[0]);
  j.report(late);
}

const bench::workloads here{
    {"hogs_many", hogs_many},
    {"hogs_sleep", hogs_sleep},
    {"hogs_echo", hogs_echo},
};

}  // namespace
