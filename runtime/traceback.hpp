// Stack traces of the running and of parked goroutines, by libunwind. Reading a trace allocates nothing.
#pragma once

#include "runtime/g.hpp"

#include <cstddef>
#include <cstdint>

namespace weft::rt {

struct trace_frame {
  const void* pc = nullptr;
  bool is_call = true;  // a call returns to pc, which may be the first byte of the next function

  // An address in the instruction that was executed.
  const void* inside() const noexcept { return static_cast<const char*>(pc) - is_call; }
};

// The frames of a stack, innermost first. A long trace has only the innermost and the outermost frames, which tell
// where the goroutine is, and where it came from.
struct trace {
  static constexpr std::size_t inner = 40, outer = 16;
  trace_frame frames[inner + outer];
  std::size_t size = 0;
  std::size_t left_out = 0;  // between frames[inner - 1] and frames[inner]
};

// Adds `next` to the hash of the numbers before it.
inline std::uint64_t hash_on(std::uint64_t hash, std::uint64_t next) noexcept {
  hash = (hash ^ next) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

// Adds the places of a trace, from frames[first] on, to the hash `before`.
inline std::uint64_t hash_places(const trace& t, std::size_t first, std::uint64_t before) noexcept {
  for (std::size_t i = first; i < t.size; ++i) {
    before = hash_on(before, reinterpret_cast<std::uintptr_t>(t.frames[i].pc));
  }
  return before;
}

// Does in advance what unwinding does only the first time. From then on, traces may be taken where little else may be
// done.
void prepare_traces() noexcept;

// Takes the trace of the calling thread, without the first `skip` frames, which are the runtime's own.
void trace_here(trace* out, std::size_t skip) noexcept;

// Takes the trace of a goroutine that is not running; its owner must keep it from being resumed meanwhile.
void trace_parked(const G* g, trace* out) noexcept;

// Where a function was called from, which may be unwound as long as its caller waits for more than this call.
struct call_site {
  void* frame_pointer;
  const void* pc;  // to which the call returns
  const void* stack_pointer;
};

// Returns where the function that calls this was called from. That function must be WEFT_NOINLINE.
[[gnu::always_inline]] inline call_site call_site_here() noexcept {
  auto* frame = static_cast<void* const*>(__builtin_frame_address(0));
  return {frame[0], frame[1], frame + 2};
}

// Takes the trace of a goroutine that was called from `at`, on its own stack.
void trace_from(const call_site& at, const G* g, trace* out) noexcept;

// Takes the trace from the context that a signal handler was given.
void trace_context(void* context, trace* out) noexcept;

}  // namespace weft::rt
