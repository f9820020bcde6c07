// Blocks of memory for what goroutines make and drop all the time, and by the million: what a task's handle shares with
// its goroutine, the timer of a timed wait, that of an after_func.
//
// A P keeps those that are freed on it; behind the Ps there is one pool for each size (runtime/slab_pool.hpp), whose
// memory goes back to the system by and by. malloc keeps seven of a size for a thread. And for each page of new memory
// it makes a system call, in all threads but the program's first (glibc 2.36: sysmalloc, grow_heap): two fifths of what
// a timer cost that was added to a million.
#pragma once

#include "sched/enter.hpp"

#include <cstddef>

namespace weft::rt {

inline constexpr bool fits_block(std::size_t size, std::size_t align) noexcept {
  return size <= block_sizes.back() && align <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;
}

// Anywhere. For so many bytes, if fits_block says so. Throws std::bad_alloc.
void* block_take(std::size_t size);

// Anywhere. What block_take(size) returned.
void block_put(void* block, std::size_t size) noexcept;

// Those that p keeps go to the pools. The caller owns p.
void empty_block_caches(P* p) noexcept;

// The pools' memory goes to the system, where whole pages are free.
void blocks_release_free() noexcept;

}  // namespace weft::rt
