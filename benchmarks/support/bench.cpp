#include "benchmarks/support/bench.hpp"

#include "benchmarks/support/ticks.hpp"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>

namespace bench {

namespace {

// Returns the number in a line "Name:   123 kB" of a file in /proc, in bytes; 0 if there is no such line.
std::size_t proc_field(const char* file, const std::string& name) {
  std::ifstream in(file);
  std::string word;
  while (in >> word) {
    std::size_t kib = 0;
    if (word == name + ":" && in >> kib) return kib * 1024;
  }
  return 0;
}

std::vector<workload>& all() {
  static std::vector<workload> list;
  return list;
}

}  // namespace

std::int64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::size_t resident_bytes() { return proc_field("/proc/self/smaps_rollup", "Rss"); }

std::int64_t samples::percentile(double p) {
  if (all_.empty()) return 0;
  std::sort(all_.begin(), all_.end());
  return all_[std::min(all_.size() - 1, static_cast<std::size_t>(p / 100 * static_cast<double>(all_.size())))];
}

std::size_t job::count(std::size_t full, std::size_t unit) const {
  auto n = static_cast<std::size_t>(static_cast<double>(full) * scale_);
  return std::max(unit, n / unit * unit);
}

std::size_t job::count_in_memory(std::size_t full, std::size_t bytes_each) const {
  return std::min(count(full), proc_field("/proc/meminfo", "MemAvailable") / 4 * 3 / bytes_each);
}

std::size_t job::connections(std::size_t wanted) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return std::min(wanted, (static_cast<std::size_t>(files.rlim_cur) - 100) / 2);
}

std::chrono::nanoseconds job::period() const {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * std::max(1.0, 2 * scale_)));
}

void job::start() {
  cpu_start_ = cpu_ns();
  wall_start_ = now_ns();
}

void job::stop(std::size_t n) {
  auto per_op = [n](std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(n); };
  ns_per_op_ = per_op(now_ns() - wall_start_);
  ops_ = n;
  note("cpu_ns_per_op", per_op(cpu_ns() - cpu_start_));
}

void job::report(samples& s) {
  ns_per_op_ = static_cast<double>(s.percentile(50));
  ops_ = s.size();
  percentiles(s);
}

void job::percentiles(samples& s) {
  note("p50_ns", static_cast<double>(s.percentile(50)));
  note("p99_ns", static_cast<double>(s.percentile(99)));
  note("p999_ns", static_cast<double>(s.percentile(99.9)));
  note("max_ns", static_cast<double>(s.percentile(100)));
}

void job::print() const {
  std::printf(R"({"workload": "%s", "procs": %u)", workload_.c_str(), procs_);
  if (ops_ > 0) std::printf(R"(, "ns_per_op": %.2f, "ops": %zu)", ns_per_op_, ops_);
  for (auto& [name, value] : notes_) std::printf(R"(, "%s": %.2f)", name.c_str(), value);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(R"(, "peak_bytes": %ld})"
              "\n",
              usage.ru_maxrss * 1024);
}

workloads::workloads(std::initializer_list<workload> more) { all().insert(all().end(), more); }

}  // namespace bench

int main(int argc, char** argv) {
  if (argc == 2 && !std::strcmp(argv[1], "list")) {
    for (auto& w : bench::all()) std::puts(w.name);
    return 0;
  }
  if (argc == 4 && !std::strcmp(argv[1], "ticks")) {
    bench::tick(static_cast<std::uint16_t>(std::atoi(argv[2])), std::atoi(argv[3]));
    return 0;
  }
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: %s WORKLOAD PROCS [SCALE] | list\n", argv[0]);
    return 2;
  }
  for (auto& w : bench::all()) {
    if (std::strcmp(w.name, argv[1]) != 0) continue;
    bench::job j(argv[1], static_cast<unsigned>(std::atoi(argv[2])), argc == 4 ? std::atof(argv[3]) : 1.0);
    try {
      bench::enter(j, w.run);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s: %s\n", argv[1], e.what());
      return 1;
    }
    j.print();
    return 0;
  }
  std::fprintf(stderr, "there is no workload %s here\n", argv[1]);
  return 2;
}
