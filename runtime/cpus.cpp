#include "runtime/cpus.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <string>

namespace weft::rt {

namespace {

unsigned count_affinity() noexcept {
  // The kernel's mask may be larger than cpu_set_t: ask with growing sizes.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(cpus));
    if (!set) return 1;
    std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    int n = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (n > 0) return static_cast<unsigned>(n);
  }
  return 1;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return in ? out.str() : std::string();
}

long long read_number(const std::string& path) {
  std::string text = read_file(path);
  long long v = 0;
  std::from_chars(text.data(), text.data() + text.size(), v);
  return v;
}

unsigned smaller(unsigned a, unsigned b) noexcept { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

// Walks from the process's own cgroup up to the root: the quota of each ancestor holds.
unsigned quota() {
  std::istringstream lines(read_file("/proc/self/cgroup"));
  unsigned least = 0;
  for (std::string line; std::getline(lines, line);) {
    auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    bool v2 = controllers.empty();
    if (!v2 && controllers.find("cpu") == std::string::npos) continue;
    for (;;) {
      if (v2) {
        least = smaller(least, parse_cpu_max(read_file("/sys/fs/cgroup" + path + "/cpu.max")));
      } else {
        std::string base = "/sys/fs/cgroup/cpu" + path;
        long long us = read_number(base + "/cpu.cfs_quota_us"), period = read_number(base + "/cpu.cfs_period_us");
        if (us > 0 && period > 0) least = smaller(least, static_cast<unsigned>((us + period - 1) / period));
      }
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return least;
}

}  // namespace

unsigned parse_cpu_max(std::string_view text) noexcept {
  long long us = 0, period = 0;
  const char* end = text.data() + text.size();
  auto first = std::from_chars(text.data(), end, us);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ' ') return 0;
  auto second = std::from_chars(first.ptr + 1, end, period);
  if (second.ec != std::errc() || us <= 0 || period <= 0) return 0;
  return static_cast<unsigned>((us + period - 1) / period);
}

unsigned count_cpus() noexcept {
  unsigned n = count_affinity();
  try {
    n = smaller(n, quota());
  } catch (...) {
    // No memory to read a file: affinity alone decides.
  }
  return std::max(n, 1u);
}

}  // namespace weft::rt
