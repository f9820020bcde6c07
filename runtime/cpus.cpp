#include "runtime/cpus.hpp"

#include "runtime/cgroup.hpp"

#include <algorithm>
#include <exception>
#include <sched.h>

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

}  // namespace

unsigned count_cpus(unsigned presumed) noexcept {
  unsigned quota = presumed;
  try {
    quota = cgroup_cpu_quota("");
  } catch (const std::exception&) {}
  const unsigned n = count_affinity();
  return std::max(quota == 0 ? n : std::min(n, quota), 1u);
}

}  // namespace weft::rt
