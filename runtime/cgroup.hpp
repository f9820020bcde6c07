// The CPU quota of this process's cgroup and its ancestors.
#pragma once

#include <string>

namespace weft::rt {

// The least quota, in processors, rounded up; 0: none, or nothing that can be understood. cgroup v2, v1, and both at
// once. root: stands before each path that is read ("/proc/self/cgroup", ...); empty, but in tests. Throws
// std::bad_alloc, or std::system_error: no descriptor or memory is left to read a file with.
unsigned cgroup_cpu_quota(const std::string& root);

}  // namespace weft::rt
