// What another thread of this process does: as the kernel tells it.
#pragma once

#include "runtime/clock.hpp"

#include <cstddef>
#include <string_view>

namespace weft::rt {

// True: it runs or waits for a processor. False: it sleeps, or cannot be looked at. Some 10 µs.
bool thread_wants_processor(int tid) noexcept;

// The processor time that it has used so far; negative: it cannot be looked at.
nanos thread_time(int tid) noexcept;

// "computing", or the system call it is in, as "in clock_nanosleep". Some of `buffer` may be used.
std::string_view describe_thread(int tid, char* buffer, std::size_t size) noexcept;

}  // namespace weft::rt
