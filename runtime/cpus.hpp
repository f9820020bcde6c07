// How many processors this process may use.
#pragma once

namespace weft::rt {

// Returns the smaller of what the affinity mask and the CPU quota of the cgroup and its ancestors allow; at least 1. If
// the quota cannot be read because the process has no descriptor or memory left, `presumed` stands in for it (0: none).
unsigned count_cpus(unsigned presumed) noexcept;

}  // namespace weft::rt
