#include "runtime/stack_cooling.hpp"

#include "runtime/release_memory.hpp"
#include "runtime/sanitizer.hpp"
#include "runtime/stack_class.hpp"

#include <algorithm>
#include <bit>

namespace weft::rt {

namespace {

constexpr std::size_t fewest = 64;  // so many may be cooled in an interval, if as many are untouched

// How many stacks are cooled under the class's lock in one go. A thread that takes a stack must not be held up by a
// million calls of madvise, nor by the calls for stacks that are large.
std::size_t most_at_once(const stack_class* c) noexcept { return c->slots_per_slab(); }

// Makes a slab without any user as new. Called under c->mutex. The kernel then has no page tables for it either (since
// Linux 6.14); otherwise these are a tenth of what shallow stacks cost.
void forget_guards(stack_class* c, slab& in) noexcept {
  std::size_t bytes = c->slots_per_slab() * c->slot_size;
  std::size_t count[guard_kinds];
  std::transform(in.guards, in.guards + guard_kinds, count, [](slot_set set) { return std::popcount(set); });
  if (!remove_guards(in.base, bytes, count)) return;
  release_memory(in.base, bytes);
  std::fill_n(in.guards, guard_kinds, slot_set{0});
  in.raw = c->all_slots();
  in.cold = 0;
}

// Gives back the memory of the first of the free stacks, which was free for longest. Called under c->mutex.
void cool_first(stack_class* c) noexcept {
  stack* s = c->free[c->first_free++];
  if (--c->free_count == 0) c->first_free = 0;
  if (c->untouched > 0) --c->untouched;
  if (c->to_cool > 0) --c->to_cool;
  if (tsan_running() && s->fiber) __tsan_destroy_fiber(s->fiber);
  std::byte* lo = s->lo;
  std::size_t number = s->slab_number, bytes = c->slot_size - page;
  if (asan_running()) __asan_unpoison_memory_region(lo, bytes);
  release_memory(lo, bytes);
  slab& in = c->slabs[number];
  in.cold |= slot_set{1} << static_cast<std::size_t>(lo - in.base) / c->slot_size;
  ++c->bare;
  c->first_bare = std::min(c->first_bare, number);
  if ((in.raw | in.cold) == c->all_slots()) forget_guards(c, in);
}

}  // namespace

bool stacks_lie_free() noexcept {
  for (stack_class* c = nullptr; (c = next_stack_class(c));) {
    lock_guard hold(c->mutex);
    if (c->free_count != 0) return true;
  }
  return false;
}

void stack_begin_interval() noexcept {
  for (stack_class* c = nullptr; (c = next_stack_class(c));) {
    lock_guard hold(c->mutex);
    c->to_cool = std::min(c->untouched, std::max(c->untouched / 2, fewest));
    c->untouched = c->free_count;
  }
}

bool stack_cool_some() noexcept {
  for (stack_class* c = nullptr; (c = next_stack_class(c));) {
    lock_guard hold(c->mutex);
    c->to_cool = std::min(c->to_cool, c->untouched);
    if (c->to_cool == 0) continue;
    for (std::size_t k = std::min(c->to_cool, most_at_once(c)); k > 0; --k) cool_first(c);
    return true;
  }
  return false;
}

void stack_release_free_pages() noexcept {
  for (stack_class* c = nullptr; (c = next_stack_class(c));) {
    for (bool more = true; more;) {
      lock_guard hold(c->mutex);
      for (std::size_t k = most_at_once(c); k > 0 && c->free_count > 0; --k) cool_first(c);
      more = c->free_count > 0;
      if (!more) c->free.release_beyond(0);
    }
  }
}

}  // namespace weft::rt
