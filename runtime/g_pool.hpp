// Where Gs come from. Headers lie side by side in slabs, are reused for other goroutines, and never become anything
// else: that is what lets a late waker look at a G that is long gone, even if its memory was given back (g_pool.cpp).
#pragma once

#include "runtime/g.hpp"

#include <cstddef>

namespace weft::rt {

// A G in state idle: one that was put back, or a new one, unless `limit` are in use already: then null.
// Throws std::bad_alloc.
G* g_take(std::size_t limit);

// The same, up to `n` at once, of those that were put back only; how many.
std::size_t g_take_free(G** out, std::size_t n, std::size_t limit) noexcept;

// Gives Gs in state idle back.
void g_put(G* const* gs, std::size_t n) noexcept;

// Returns the memory of free Gs to the system, where a whole block of them is free.
void g_release_free() noexcept;

// How many were taken and not put back.
std::size_t g_in_use() noexcept;

// Every G ever made, in any state. Takes no lock.
using g_visitor = void (*)(G*, void*);
void for_each_g(g_visitor visit, void* arg);

}  // namespace weft::rt
