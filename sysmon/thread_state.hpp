// What another thread of this process does: as the kernel tells it.
#pragma once

#include "runtime/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::rt {

enum class thread_does : std::uint8_t {
  compute,  // it runs, or waits for a processor
  sleep,    // in a call of the kernel
  unknown,  // it cannot be looked at: no /proc, or no descriptor is left
};

// Some 10 µs.
thread_does look_at_thread(int tid) noexcept;

// The processor time that it has used so far; negative: it cannot be looked at.
nanos thread_time(int tid) noexcept;

// "computing", or the system call it is in, as "in clock_nanosleep". Some of `buffer` may be used.
std::string_view describe_thread(int tid, char* buffer, std::size_t size) noexcept;

}  // namespace weft::rt
