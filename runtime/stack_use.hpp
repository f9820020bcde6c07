// Measures how deep stacks were used, by the place where their goroutines were started. This is done on request only
// (WEFT_DEBUG=stacks, options::measure_stacks).
//
// Every goroutine then begins on a stack of zeros. When it has ended, the lowest word that is not zero tells how deep
// it went. mincore tells which pages to look at.
#pragma once

#include "runtime/g.hpp"

#include <cstddef>
#include <cstdint>

namespace weft::rt {

struct stack_use {
  const void* spawn_pc = nullptr;
  std::size_t stack_size = 0;
  std::uint64_t goroutines = 0;
  std::size_t deepest = 0;  // bytes
};

// Written before the first M starts; read by all, relaxed.
extern constinit atomic<bool> measuring_stacks;

// Must be called before any goroutine runs. What was measured in earlier runs stays.
void measure_stacks(bool on) noexcept;

// Notes how deep g used its stack, and fills the stack with zeros again. g must have ended, and nobody may be on its
// stack.
void note_stack_use(const G* g) noexcept;

inline constexpr std::size_t max_stack_uses = 1024;  // all further places count as one without a place
struct stack_uses {
  std::size_t count = 0;
  stack_use list[max_stack_uses];

  stack_use& at(const void* spawn_pc, std::size_t stack_size) noexcept;
  void add(const G* g, std::size_t depth) noexcept;
};

// Copies what was noted so far.
void copy_stack_uses(stack_uses& out) noexcept;

// Returns how many bytes of g's stack are used. The goroutine must stand still, unless `rough` is set: then whole pages
// count.
std::size_t stack_depth(const G* g, bool rough) noexcept;

}  // namespace weft::rt
