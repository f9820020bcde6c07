// What timers cannot do without: an atomic operation on memory that is not in the cache, a look at the clock, and a
// sleep in the kernel for each instant at which something has to wake.
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <vector>

#include "benchmarks/support/bench.hpp"

namespace {

struct alignas(64) timer {
  std::atomic<std::uint64_t> state{0};
};

std::vector<std::unique_ptr<timer>> in_random_order(std::size_t n) {
  std::vector<std::unique_ptr<timer>> timers(n);
  for (auto& t : timers) t = std::make_unique<timer>();
  std::shuffle(timers.begin(), timers.end(), std::minstd_rand(2));
  return timers;
}

// Stopping one of many timers, each of which may be firing, takes an atomic operation on that timer.
void stop_1m(bench::job& j) {
  std::size_t n = j.count(1'000'000);
  auto timers = in_random_order(n);
  j.measure_once(n, [&] {
    for (auto& t : timers) t->state.exchange(1);
  });
}

// Setting one of many timers anew takes that, and a look at the clock.
void reset_among(bench::job& j, std::size_t n) {
  auto timers = in_random_order(n);
  j.measure(j.count(2'000'000), [&](std::size_t ops) {
    for (std::size_t i = 0; i < ops; ++i) timers[i % n]->state.exchange(static_cast<std::uint64_t>(bench::now_ns()));
  });
}

// One thread that wakes 10,000 times a second: the CPU time for each wake-up.
void sleepers(bench::job& j) {
  prctl(PR_SET_TIMERSLACK, 1);
  const auto n = static_cast<std::size_t>(std::max(2.0, 4 * j.scale())) * 10'000;
  j.measure_once(n, [&] {
    std::int64_t due = bench::now_ns();
    for (std::size_t i = 0; i < n; ++i) {
      due += 100'000;
      timespec at{due / 1'000'000'000, due % 1'000'000'000};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
    }
  });
}

const bench::workloads here{
    {"reset_1k", [](bench::job& j) { reset_among(j, 1000); }},
    {"reset_10k", [](bench::job& j) { reset_among(j, 10'000); }},
    {"reset_100k", [](bench::job& j) { reset_among(j, 100'000); }},
    {"reset_1m", [](bench::job& j) { reset_among(j, 1'000'000); }},
    {"timer_stop_1m", stop_1m},
    {"sleepers", sleepers},
};

}  // namespace
