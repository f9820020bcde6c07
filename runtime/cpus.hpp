// How many processors this process may use.
#pragma once

namespace weft::rt {

// The smaller of what affinity and the CPU quota of the cgroup and its ancestors allow; at least 1. The quota cannot be
// read while the process has no descriptor or memory left: then it is `presumed`, 0 for none.
unsigned count_cpus(unsigned presumed) noexcept;

}  // namespace weft::rt
