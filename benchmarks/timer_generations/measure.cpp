#include "benchmarks/timer_generations/measure.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace generations {

namespace {

// Returns a percentile, in us. Reorders `all`.
double percentile(std::vector<rt::nanos>& all, double p) {
  auto at = std::min(all.size() - 1, static_cast<std::size_t>(p / 100 * static_cast<double>(all.size())));
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(at), all.end());
  return static_cast<double>(all[at]) / 1e3;
}

}  // namespace

reading reading::now() {
  reading r;
  timespec cpu{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  r.cpu = cpu.tv_sec * rt::second + cpu.tv_nsec;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  r.switches = usage.ru_nvcsw + usage.ru_nivcsw;
  r.locks = total_waits();
  r.wall = rt::nanotime();
  return r;
}

std::size_t job::count(std::size_t full, std::size_t least) const {
  return std::max(least, static_cast<std::size_t>(static_cast<double>(full) * scale));
}

void print(const job& j, outcome& o) {
  auto per_op = [&o](auto from, auto to) { return static_cast<double>(to - from) / static_cast<double>(o.ops); };
  auto difference = [&o](std::uint64_t wait_totals::*n) {
    return static_cast<unsigned long long>(o.end.locks.*n - o.begin.locks.*n);
  };
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);

  std::printf(R"({"generation": "%s", "workload": "%s", "timers": %zu, "procs": %u, "ops": %zu)", j.generation.c_str(),
              j.workload.c_str(), j.timers, j.procs, o.ops);
  std::printf(R"(, "ns_per_op": %.2f, "cpu_ns_per_op": %.2f)", per_op(o.begin.wall, o.end.wall),
              per_op(o.begin.cpu, o.end.cpu));
  std::printf(R"(, "lock_acquired": %llu, "lock_waited": %llu, "state_waited": %llu)",
              difference(&wait_totals::acquired), difference(&wait_totals::waited), difference(&wait_totals::yielded));
  std::printf(R"(, "switches_per_op": %.4f)", per_op(o.begin.switches, o.end.switches));
  if (!o.late.empty()) {
    std::printf(R"(, "late_p50_us": %.2f)", percentile(o.late, 50));
    std::printf(R"(, "late_p99_us": %.2f)", percentile(o.late, 99));
  }
  std::printf(R"(, "peak_bytes": %ld})"
              "\n",
              usage.ru_maxrss * 1024);
}

}  // namespace generations
