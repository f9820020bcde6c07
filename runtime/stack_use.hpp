// How deep stacks were used, by where their goroutines were started; on request only (WEFT_DEBUG=stacks,
// options::measure_stacks).
//
// Every goroutine then begins on a stack of zeros, so that the lowest word that is something else tells its depth when
// it has ended. Which pages to look at is known from mincore.
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

// Written before the first M starts; read by all.
extern constinit bool measuring_stacks;

// Before any goroutine runs. What was measured in earlier runs stays.
void measure_stacks(bool on) noexcept;

// g has ended, and nobody is on its stack, which is of zeros again afterwards.
void note_stack_use(const G* g) noexcept;

inline constexpr std::size_t max_stack_uses = 1024;  // more places of start count as one without a place
struct stack_uses {
  std::size_t count = 0;
  stack_use list[max_stack_uses];

  stack_use& at(const void* spawn_pc, std::size_t stack_size) noexcept;
  void add(const G* g, std::size_t depth) noexcept;
};

// What was noted so far.
void copy_stack_uses(stack_uses& out) noexcept;

// Of a stack whose goroutine stands still, or (rough) by pages.
std::size_t stack_depth(const G* g, bool rough) noexcept;

}  // namespace weft::rt
