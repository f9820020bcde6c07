// Stack traces of the running and of parked goroutines, by libunwind. Reading a trace allocates nothing.
#pragma once

#include "runtime/g.hpp"

#include <cstddef>
#include <string_view>

namespace weft::rt {

struct trace_frame {
  const void* pc;
};

inline constexpr std::size_t max_frames = 64;

// Return addresses, innermost first. `skip` leaves out that many frames of the runtime's own.
std::size_t trace_here(trace_frame* out, std::size_t capacity, std::size_t skip) noexcept;

// Of a goroutine that is not running; its owner must keep it from being resumed meanwhile.
std::size_t trace_parked(const G* g, trace_frame* out, std::size_t capacity) noexcept;

// From the context a signal handler was given.
std::size_t trace_context(void* context, trace_frame* out, std::size_t capacity) noexcept;

// The function around pc: demangled name and offset into `buffer`, which is always terminated.
std::string_view symbolize(const void* pc, char* buffer, std::size_t capacity) noexcept;

}  // namespace weft::rt
