// How many processors this process may use.
#pragma once

#include <string_view>

namespace weft::rt {

// The smaller of what affinity and the CPU quota of the cgroup and its ancestors allow; at least 1.
unsigned count_cpus() noexcept;

// The quota in cpu.max (cgroup v2: "max 100000" or "150000 100000") in processors, rounded up; 0: none or malformed.
unsigned parse_cpu_max(std::string_view text) noexcept;

}  // namespace weft::rt
