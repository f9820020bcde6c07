// The CPU quota of this process's cgroup and its ancestors.
#pragma once

#include <string>

namespace weft::rt {

// Returns the smallest of these quotas in processors, rounded up; 0 if there is none, or none that can be understood.
// Handles cgroup v2, v1, and both at once. `root` is put in front of each path that is read ("/proc/self/cgroup", ...);
// it is empty except in tests. Throws std::bad_alloc, or std::system_error if no descriptor or memory is left to read a
// file with.
unsigned cgroup_cpu_quota(const std::string& root);

}  // namespace weft::rt
