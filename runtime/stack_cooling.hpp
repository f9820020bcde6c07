// Gives the memory of free stacks back to the system.
//
// This happens soon, but not at once: the next burst of goroutines may need what one burst leaves, and giving a page
// back and getting it again costs more than most goroutines do. So time is divided into intervals. Of the stacks that
// lay free during all of one interval, half may lose their memory in the next, and at least 64, as in allocators that
// let their free pages decay. A program with a burst in each interval pays nothing. A class's list is last in, first
// out, so the stacks that were free for longest come first. The number of these that were not touched is the smallest
// number of stacks that were free at any time in the interval.
//
// From time to time, all free stacks lose their memory (forced_tick.cpp).
#pragma once

namespace weft::rt {

// True if some stack is free, not counting those in the caches of Ps.
bool stacks_lie_free() noexcept;

// Ends an interval, and begins the next.
void stack_begin_interval() noexcept;

// Gives back the memory of some of the stacks that may lose it in this interval: up to 64 stacks, and 16 MiB of address
// space, of one class. False: there were none.
bool stack_cool_some() noexcept;

// Returns the memory of all free stacks to the system.
void stack_release_free_pages() noexcept;

}  // namespace weft::rt
