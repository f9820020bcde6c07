// The inside of a stack class, for the code that makes stacks (stack.cpp), and for the code that takes their memory
// away (stack_cooling.cpp).
#pragma once

#include "runtime/lock.hpp"
#include "runtime/mapped_array.hpp"
#include "runtime/stack.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::rt {

// Slots by number, as bits. A slot that is neither raw nor cold has a header, and is in use or in the class's list; or
// it is about to get one (stack.cpp: claim).
using slot_set = std::uint64_t;
struct slab {
  std::byte* base;
  slot_set raw;                    // without a guard: never used, or as new
  slot_set cold = 0;               // free, with a guard, without memory
  slot_set guards[guard_kinds]{};  // by guard_kind
};

struct stack_class {
  explicit stack_class(std::size_t slot) noexcept : slot_size(slot) {}
  const std::size_t slot_size;  // including the guard
  stack_class* next = nullptr;
  lock mutex{lock_rank::stacks};
  std::vector<slab> slabs;
  mapped_array<stack*> free;  // last in, first out, from first_free on; has room for every slot of the class
  std::size_t first_free = 0;
  std::size_t free_count = 0;
  std::size_t untouched = 0;   // how many of the first ones were not taken since the interval began
  std::size_t to_cool = 0;     // how many of the first ones may lose their memory (stack_cooling.hpp)
  std::size_t bare = 0;        // raw and cold slots
  std::size_t first_bare = 0;  // no slab before this one has any

  std::size_t slots_per_slab() const noexcept {
    constexpr std::size_t slab_target = 16 * 1024 * 1024;
    return std::clamp<std::size_t>(slab_target / stack_size_of(this), 1, 64);
  }
  stack** free_end() noexcept { return free.data() + first_free + free_count; }
  std::size_t slab_size() const noexcept { return slots_per_slab() * slot_size; }
  std::size_t slots() const noexcept { return slabs.size() * slots_per_slab(); }
  slot_set all_slots() const noexcept { return ~slot_set{0} >> (64 - slots_per_slab()); }
};

// Steps through all classes: returns the first for null, and null after the last.
stack_class* next_stack_class(stack_class* c) noexcept;

}  // namespace weft::rt
