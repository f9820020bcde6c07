// How many processors this process may use.
#pragma once

namespace weft::rt {

// The smaller of what affinity and the CPU quota of the cgroup and its ancestors allow; at least 1.
unsigned count_cpus() noexcept;

}  // namespace weft::rt
