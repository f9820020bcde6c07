// Where Gs come from. They lie side by side in slabs, are reused for other goroutines, and never become anything else.
// This is why a late waker may look at a G that is long gone, even if its memory was given back (g_pool.cpp).
#pragma once

#include "runtime/g.hpp"

#include <cstddef>

namespace weft::rt {

// Returns a G in state idle: one that was put back, or a new one. Returns null if `limit` are in use already. Throws
// std::bad_alloc.
G* g_take(std::size_t limit);

// Takes up to `n` Gs at once, but only Gs that were put back. Returns how many.
std::size_t g_take_free(G** out, std::size_t n, std::size_t limit) noexcept;

// Puts back Gs in state idle.
void g_put(G* const* gs, std::size_t n) noexcept;

// Returns the memory of free Gs to the system where a whole block of them is free.
void g_release_free() noexcept;

// Returns how many Gs were taken and not put back.
std::size_t g_in_use() noexcept;

// Visits every G that was made and whose memory was not given back, in any state. Takes no lock.
using g_visitor = void (*)(G*, void*);
void for_each_g(g_visitor visit, void* arg);

}  // namespace weft::rt
