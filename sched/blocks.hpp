// Blocks of memory of one size, for what goroutines make and drop all the time: what a task's handle shares with its
// goroutine, the timer of a timed wait. A P keeps those that are freed on it, as malloc does for a thread; but that
// keeps seven of a size, and a thousand tasks may be joined one after the other.
#pragma once

#include "sched/enter.hpp"

#include <cstddef>

namespace weft::rt {

inline constexpr std::size_t block_size = 128;

inline constexpr bool fits_block(std::size_t size, std::size_t align) noexcept {
  return size <= block_size && align <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;
}

// Anywhere. Throws std::bad_alloc.
void* block_take();

// Anywhere. What block_take returned.
void block_put(void* block) noexcept;

void free_all(free_block_list& blocks) noexcept;

}  // namespace weft::rt
