// A goroutine's beginning and end: its G, its closure, its stack (spawn.cpp).
#pragma once

#include "sched/scheduler.hpp"

#include <cstddef>
#include <cstdint>

namespace weft::rt {

G* spawn_begin(std::size_t stack_size);  // 0: default. Throws std::bad_alloc, std::logic_error
void spawn_abort(G* g) noexcept;
std::uint64_t spawn_commit(G* g) noexcept;  // returns its id
void* large_closure_room(G* g, std::size_t size, std::size_t align);
inline void* closure_room(G* g, std::size_t size, std::size_t align) {  // null: too large. Throws std::bad_alloc
  if (WEFT_LIKELY(size <= sizeof g->small_closure && align <= 16)) return g->closure = g->small_closure;
  return large_closure_room(g, size, align);
}
bool begins_at_once(const P* p, const G* g) noexcept;    // there is a stack for it: no system call is needed
void begin(P* p, G* g) noexcept;                         // g has not begun: now it can be switched to
void recycle(P* p, G* g) noexcept;                       // g has ended, and nobody is on its stack
void empty_caches(P* p) noexcept;                        // of free Gs, stacks and blocks; the caller owns p
void empty_idle_caches(M* m) noexcept;                   // of m's P and of idle ones
void empty_all_caches() noexcept;                        // of all Ps; nobody runs
void begin_room_for_goroutines(std::size_t stack_size);  // as a run() begins; throws std::bad_alloc
void make_room_for_goroutines();                         // throws std::bad_alloc
std::size_t count_goroutines() noexcept;

}  // namespace weft::rt
