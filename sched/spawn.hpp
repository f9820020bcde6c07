// A goroutine's beginning and end: its G, its closure, its stack (spawn.cpp).
#pragma once

#include "sched/enter.hpp"

#include <cstddef>
#include <cstdint>

namespace weft::rt {

// Starting a goroutine takes three steps: spawn_begin returns its G, the caller fills it in, spawn_commit queues it.
// spawn_abort drops it instead. stack_size 0: the default. There must be a run(). Throws std::bad_alloc.
G* spawn_begin(std::size_t stack_size);
G* try_spawn_begin() noexcept;  // the fast path, which makes no call; null: nothing has happened, call spawn_begin
void spawn_abort(G* g) noexcept;
void spawn_commit(G* g) noexcept;
void* large_closure_room(G* g, std::size_t size, std::size_t align);
inline constexpr bool fits_header(std::size_t size, std::size_t align) noexcept {
  return size <= sizeof G::small_closure && align <= 16;
}
// Returns room for a closure in g's header, or else at the top of its stack. Null: the closure is too large. Throws
// std::bad_alloc.
inline void* closure_room(G* g, std::size_t size, std::size_t align) {
  if (WEFT_LIKELY(fits_header(size, align))) return g->closure = g->small_closure;
  return large_closure_room(g, size, align);
}
bool begins_at_once(const P* p, const G* g) noexcept;    // g has a stack, or p one for it: no system call is needed
void begin(P* p, G* g) noexcept;                         // prepares g, which has not begun, to be switched to
void recycle(P* p, G* g) noexcept;                       // frees g, which has ended, and whose stack nobody is on
void empty_caches(P* p) noexcept;                        // empties p's caches (Gs, stacks, blocks); the caller owns p
void empty_idle_caches(M* m) noexcept;                   // empties the caches of m's P and of idle Ps
void empty_all_caches() noexcept;                        // empties the caches of all Ps, while no goroutine runs
void begin_room_for_goroutines(std::size_t stack_size);  // called when a run() begins; throws std::bad_alloc
void make_room_for_goroutines();                         // makes room for more goroutines; throws std::bad_alloc
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
