// Returns for how long the kernel lets the calling thread compute before it turns to another one
// (runtime/time_slice.hpp), in ns. Returns 0 before Linux 6.12.
#pragma once

#include <cstdint>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::test {

inline std::uint64_t slice_of_thread() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } a{};
  return ::syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) == 0 ? a.runtime : 0;
}

}  // namespace weft::test
