// How late the kernel wakes a thread that sleeps, with the least timer slack, alone and beside eight threads that
// compute.
#include <sys/prctl.h>
#include <time.h>

#include <atomic>
#include <thread>
#include <vector>

#include "benchmarks/support/bench.hpp"

namespace {

void lateness(bench::job& j, long us) {
  prctl(PR_SET_TIMERSLACK, 1);
  bench::samples late;
  j.start();
  for (auto end = bench::clock::now() + j.period(); bench::clock::now() < end;) {
    std::int64_t due = bench::now_ns() + us * 1000;
    timespec at{due / 1'000'000'000, due % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
    late.add(bench::now_ns() - due);
  }
  j.stop(late.size());
  j.report(late);
}

void beside_hogs(bench::job& j) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> hogs;
  for (int i = 0; i < 8; ++i) {
    hogs.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) bench::keep(0);
    });
  }
  lateness(j, 1000);
  stop = true;
  for (auto& t : hogs) t.join();
}

const bench::workloads here{
    {"hogs_sleep", beside_hogs},
    {"late_50us", [](bench::job& j) { lateness(j, 50); }},
    {"late_200us", [](bench::job& j) { lateness(j, 200); }},
    {"late_1ms", [](bench::job& j) { lateness(j, 1000); }},
    {"late_5ms", [](bench::job& j) { lateness(j, 5000); }},
};

}  // namespace
