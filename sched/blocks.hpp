// Blocks of memory for small objects that goroutines allocate and free all the time, and by the million: the state that
// a task's handle shares with its goroutine, the timer of a timed wait, the timer of an after_func.
//
// A P caches the blocks that are freed on it. Behind the Ps there is one pool for each size (runtime/slab_pool.hpp),
// which returns its memory to the system by and by. malloc does worse here: it caches only seven blocks of a size for
// each thread, and in all threads but the program's first it makes a system call for each page of new memory (glibc
// 2.36: sysmalloc, grow_heap). Those system calls took two fifths of the cost of adding a timer to a million others.
#pragma once

#include "sched/enter.hpp"

#include <cstddef>

namespace weft::rt {

inline constexpr bool fits_block(std::size_t size, std::size_t align) noexcept {
  return size <= block_sizes.back() && align <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;
}

// Returns a block for `size` bytes, for which fits_block must be true. May be called anywhere. Throws std::bad_alloc.
void* block_take(std::size_t size);

// Gives back what block_take(size) returned. May be called anywhere.
void block_put(void* block, std::size_t size) noexcept;

// Moves the blocks that p caches to the pools. The caller owns p.
void empty_block_caches(P* p) noexcept;

// Returns the pools' memory to the system, where whole pages are free.
void blocks_release_free() noexcept;

}  // namespace weft::rt
