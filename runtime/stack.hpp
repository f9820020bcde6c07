// Stacks: address space, not memory.
//
// A stack class cuts slabs of reserved address space into slots of one size. A slot is touched lazily from its
// top, where the G header lies; its lowest page is a guard:
//
//     lo                                                            hi
//     | guard |            unused, no memory             | frames | closure | G | colour |
//
// Guards, in the order they are tried:
//   1. MADV_GUARD_INSTALL (Linux 6.13): an entry in the page table, no mapping of its own. A million guards
//      fit in a few dozen maps.
//   2. mprotect(PROT_NONE): splits the mapping, so it is used for as many stacks as vm.max_map_count allows.
//   3. a canary above the lowest page, checked whenever the goroutine parks.
//
// Colour: tops of equal address modulo 4096 would make all headers compete for the same few cache sets, so the
// top of slot i is moved down by a multiple of 64 bytes that depends on i.
//
// A slot, once cut, stays a G for ever: its memory is reused for goroutines of the same class only. That is what
// lets a late waker look at a G that is long gone.
#pragma once

#include "runtime/g.hpp"
#include "runtime/lock.hpp"

#include <cstddef>
#include <cstdint>

namespace weft::rt {

enum class guard_kind : std::uint8_t { madvise, mprotect, canary };

inline constexpr std::size_t default_stack_size = 256 * 1024;
inline constexpr std::size_t min_stack_size = 16 * 1024;

// The class for stacks of `size` bytes (rounded up to pages, at least min_stack_size); made on first use.
// Throws std::bad_alloc.
stack_class* stack_class_for(std::size_t size);

std::size_t stack_size_of(const stack_class* c) noexcept;

// A G in state idle with its stack: one from the class's free list, else a new slot. Throws std::bad_alloc.
G* stack_take(stack_class* c);

// The same, up to `n` at once, free ones only; how many.
std::size_t stack_take_free(stack_class* c, G** out, std::size_t n) noexcept;

// Gives Gs in state idle back to their class.
void stack_put(stack_class* c, G* const* gs, std::size_t n) noexcept;

// Slots ever cut, of all classes: as many goroutines can exist.
std::size_t stack_slots() noexcept;

// Aborts if the canary of a stack without a guard was overwritten.
void stack_check_canary(const G* g) noexcept;

// Every slot ever cut, of every class. The visitor must not take or put stacks.
using g_visitor = void (*)(G*, void*);
void for_each_g(g_visitor visit, void* arg) noexcept;

// The goroutine whose guard contains `address`, or null. Async-signal-safe.
const G* stack_guard_owner(const void* address) noexcept;

// Returns the pages of free stacks to the system, except the one with the header; the number of bytes.
std::size_t stack_release_free_pages() noexcept;

struct stack_counters {
  std::size_t slots = 0;
  std::size_t guards_madvise = 0;
  std::size_t guards_mprotect = 0;
  std::size_t guards_none = 0;
};
stack_counters stack_count() noexcept;

}  // namespace weft::rt
