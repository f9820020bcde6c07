#include "runtime/stack_use.hpp"

#include "runtime/stack_guard.hpp"

#include "runtime/lock.hpp"
#include "runtime/release_memory.hpp"
#include "runtime/sanitizer.hpp"
#include "runtime/stack.hpp"
#include "runtime/stack_cooling.hpp"

#include <algorithm>
#include <cstring>

namespace weft::rt {

constinit atomic<bool> measuring_stacks{false};

namespace {

struct {
  lock mutex{lock_rank::leaf};
  stack_uses uses;
} constinit noted;

// Returns the lowest page from `lo` on that was touched.
std::byte* first_touched_page(std::byte* lo, std::byte* hi) noexcept {
  constexpr std::size_t at_once = 256;
  unsigned char in_memory[at_once];
  for (std::byte* from = lo; from < hi;) {
    std::size_t pages = std::min((static_cast<std::size_t>(hi - from) + page - 1) / page, at_once);
    if (::mincore(from, pages * page, in_memory) != 0) return lo;
    for (std::size_t i = 0; i < pages; ++i) {
      if (in_memory[i] & 1) return from + i * page;
    }
    from += pages * page;
  }
  return hi;
}

// Returns where measuring begins: above the canary, which then has a page of its own.
std::byte* lowest(const stack* s) noexcept { return s->has_canary ? s->lo + page : s->lo; }

}  // namespace

void measure_stacks(bool on) noexcept {
  measuring_stacks.store(on, relaxed);
  if (on) stack_release_free_pages();  // those of earlier runs are not filled with zeros
}

std::size_t stack_depth(const G* g, bool rough) noexcept {
  const stack* s = g->own_stack;
  if (!s) return 0;
  std::byte* at = first_touched_page(lowest(s), s->hi);
  if (asan_running()) __asan_unpoison_memory_region(at, static_cast<std::size_t>(s->hi - at));
  if (!rough) {
    while (at < s->hi && *reinterpret_cast<const std::uint64_t*>(at) == 0) at += sizeof(std::uint64_t);
  }
  return static_cast<std::size_t>(s->hi - at);
}

stack_use& stack_uses::at(const void* spawn_pc, std::size_t stack_size) noexcept {
  stack_use* end = list + count;
  stack_use* found =
      std::find_if(list, end, [&](const stack_use& u) { return u.spawn_pc == spawn_pc && u.stack_size == stack_size; });
  if (found != end) return *found;
  if (count == max_stack_uses) return list[count - 1];
  bool last = count == max_stack_uses - 1;
  list[count] = {last ? nullptr : spawn_pc, last ? 0 : stack_size, 0, 0};
  return list[count++];
}

void stack_uses::add(const G* g, std::size_t depth) noexcept {
  stack_use& u = at(g->spawn_pc, stack_size_of(g->own_stack->origin));
  ++u.goroutines;
  u.deepest = std::max(u.deepest, depth);
}

void note_stack_use(const G* g) noexcept {
  const stack* s = g->own_stack;
  std::size_t depth = stack_depth(g, false);
  std::byte* from = first_touched_page(lowest(s), s->hi);
  auto* last_page = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(s->hi) & ~(page - 1));
  if (from < last_page) release_memory(from, static_cast<std::size_t>(last_page - from));
  from = std::max(from, last_page);
  std::memset(from, 0, static_cast<std::size_t>(s->hi - from));
  if (g->is_system()) return;
  lock_guard hold(noted.mutex);
  noted.uses.add(g, depth);
}

void copy_stack_uses(stack_uses& out) noexcept {
  lock_guard hold(noted.mutex);
  out = noted.uses;
}

}  // namespace weft::rt
