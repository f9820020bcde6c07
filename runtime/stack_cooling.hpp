// Where the memory of free stacks goes back to the system.
//
// Soon, but not at once: what one burst of goroutines leaves the next may need, and giving a page back and getting it
// again costs more than most goroutines do. So time goes by in intervals, and what lay free during all of one may
// go in the next: half of it, and at least 64 stacks, as allocators do that let their free pages decay. A program with
// a burst in each interval pays nothing. A class's list is last in, first out: the stacks that were free for longest
// lie first, and as many of these were not touched as were free at the least.
//
// Also, from time to time, all of it (forced_tick.cpp).
#pragma once

namespace weft::rt {

// Some stack is free, other than in the caches of Ps.
bool stacks_lie_free() noexcept;

// An interval ends, and the next begins.
void stack_begin_interval() noexcept;

// Some of those that may go in this interval lose their memory: up to 64, and 16 MiB of address space, of one class.
// False: none did.
bool stack_cool_some() noexcept;

// Returns the memory of all free stacks to the system.
void stack_release_free_pages() noexcept;

}  // namespace weft::rt
