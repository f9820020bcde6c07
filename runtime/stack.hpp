// Stacks: address space, not memory.
//
// A stack class cuts slabs of reserved address space into slots of one size. A slot is touched lazily from its
// top, where its own header lies; its lowest page is a guard:
//
//     slot                                                   end of the slot
//     | guard |lo          unused, no memory             | frames |hi stack | colour |
//
// Guards, in the order they are tried:
//   1. MADV_GUARD_INSTALL (Linux 6.13): an entry in the page table, no mapping of its own. A million guards
//      fit in a few dozen maps.
//   2. mprotect(PROT_NONE): splits the mapping, so it is used for as many stacks as a quarter of vm.max_map_count.
//   3. a canary above the lowest page, checked whenever the goroutine parks, yields or ends.
//
// Colour: tops of equal address modulo 4096 would make all frames compete for the same few cache sets, so the
// top of slot i is moved down by a multiple of 64 bytes that depends on i. For the same reason a slot is an odd number
// of pages: tops a power of two apart would compete for few sets of the TLB (docs/adr/0018-an-odd-number-of-pages.md).
//
// A goroutine takes its stack where nothing may fail: in the dispatcher. So slots are reserved while goroutines are
// spawned (stack_reserve), and taking a reserved one always succeeds.
#pragma once

#include "runtime/g.hpp"
#include "runtime/stack_guard.hpp"

#include <cstddef>
#include <cstdint>

namespace weft::rt {

struct stack_class;

struct alignas(64) stack {
  std::byte* lo = nullptr;  // first usable byte, above the guard
  std::byte* hi = nullptr;  // the end of the usable bytes
  stack_class* origin = nullptr;
  G* user = nullptr;      // null: it is free
  void* fiber = nullptr;  // ThreadSanitizer's
  std::uint32_t fiber_uses = 0;
  std::uint32_t slab_number = 0;
  bool has_canary = false;
};

inline constexpr std::size_t default_stack_size = 256 * 1024;
inline constexpr std::size_t min_stack_size = 16 * 1024;

// Returns the class for stacks of `size` bytes, not counting the guard (rounded up to an even number of pages, at least
// min_stack_size). A class is made on first use. Throws std::bad_alloc.
stack_class* stack_class_for(std::size_t size);

std::size_t stack_size_of(const stack_class* c) noexcept;

// Returns how many slots are mapped at a time.
std::size_t stack_slots_per_slab(const stack_class* c) noexcept;

// Returns how many stacks were taken and not put back.
std::size_t stack_in_use(stack_class* c) noexcept;

// Makes sure that the class has at least n slots, used and unused ones. Throws std::bad_alloc.
void stack_reserve(stack_class* c, std::size_t n);

// Takes at least one stack and up to `n`, and returns how many. They are reserved ones if the class's reserve covers
// all its users. Throws std::bad_alloc.
std::size_t stack_take(stack_class* c, stack** out, std::size_t n);

// Gives free stacks back to their class.
void stack_put(stack_class* c, stack* const* stacks, std::size_t n) noexcept;

// True if some stacks have no guard page, so that stack_check_canary has something to check.
inline bool stack_canaries_in_use() noexcept { return guards_installed(guard_kind::canary) != 0; }

// Ends the process if the canary of g's stack was overwritten, or if g, which calls this, has run past it.
void stack_check_canary(const G* g) noexcept;

// Returns the goroutine whose guard page contains `address`, or null. Async-signal-safe.
const G* stack_guard_owner(const void* address) noexcept;

// True if g, which runs, has met a fault beyond the end of its stack: `sp` was the stack pointer, and `touched` the
// address that faulted, or null. False if sp belongs to some other stack, which the goroutine changed to.
// Async-signal-safe.
bool stack_is_left(const G* g, std::uintptr_t sp, const void* touched) noexcept;

struct stack_counters {
  std::size_t slots = 0;  // those with a guard: all that were ever used, except where a whole slab became as new
  std::size_t guards_madvise = 0;
  std::size_t guards_mprotect = 0;
  std::size_t guards_none = 0;
};
stack_counters stack_count() noexcept;

}  // namespace weft::rt
