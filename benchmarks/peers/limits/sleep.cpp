// How late the kernel wakes a thread that sleeps, with the least timer slack.
#include <sys/prctl.h>
#include <time.h>

#include "benchmarks/support/bench.hpp"

namespace {

void lateness(bench::job& j, long us) {
  prctl(PR_SET_TIMERSLACK, 1);
  bench::samples late;
  for (auto end = bench::clock::now() + j.period(); bench::clock::now() < end;) {
    std::int64_t due = bench::now_ns() + us * 1000;
    timespec at{due / 1'000'000'000, due % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
    late.add(bench::now_ns() - due);
  }
  j.report(late);
}

const bench::workloads here{
    {"late_50us", [](bench::job& j) { lateness(j, 50); }},
    {"late_200us", [](bench::job& j) { lateness(j, 200); }},
    {"late_1ms", [](bench::job& j) { lateness(j, 1000); }},
    {"late_5ms", [](bench::job& j) { lateness(j, 5000); }},
};

}  // namespace
