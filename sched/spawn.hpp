// A goroutine's beginning and end: its G, its closure, its stack (spawn.cpp).
#pragma once

#include "sched/enter.hpp"

#include <cstddef>
#include <cstdint>

namespace weft::rt {

G* spawn_begin(std::size_t stack_size);  // 0: default. Throws std::bad_alloc. A run() is there
G* try_spawn_begin() noexcept;           // the same without a call; null: nothing has happened, spawn_begin can do it
void spawn_abort(G* g) noexcept;
void spawn_commit(G* g) noexcept;
void* large_closure_room(G* g, std::size_t size, std::size_t align);
inline constexpr bool fits_header(std::size_t size, std::size_t align) noexcept {
  return size <= sizeof G::small_closure && align <= 16;
}
inline void* closure_room(G* g, std::size_t size, std::size_t align) {  // null: too large. Throws std::bad_alloc
  if (WEFT_LIKELY(fits_header(size, align))) return g->closure = g->small_closure;
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

inline G* try_spawn_begin() noexcept {
  M* m = try_enter_runtime();
  if (WEFT_UNLIKELY(!m)) return nullptr;
  P* p = m->p.load(relaxed);
  G* g = nullptr;
  if (p && p->id_next != p->id_end && (g = p->free_gs.pop())) {
    p->joins.by = nullptr;
    g->id = p->id_next++;
  }
  leave_runtime(m);
  return g;
}

}  // namespace weft::rt
