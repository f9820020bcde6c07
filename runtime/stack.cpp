#include "runtime/stack.hpp"

#include "runtime/advise.hpp"
#include "runtime/never_destroyed.hpp"
#include "runtime/report.hpp"
#include "runtime/sanitizer.hpp"
#include "runtime/stack_class.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <sys/mman.h>
#include <vector>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace weft::rt {

namespace {

// A stack pointer that is farther below a stack than this belongs to some other stack.
constexpr std::size_t farthest_overflow = 1024 * 1024;

// From one slot to the next, the colour moves on by 5 lines, modulo 40 of a page's 64 lines. The rest of the page is
// for the frames of a parked goroutine.
constexpr std::size_t colours = 40, colour_step = 5, line = 64;

struct class_table {
  lock mutex{lock_rank::leaf};   // may be taken under a class's lock
  stack_class* first = nullptr;  // they are never destroyed
};

constinit never_destroyed<class_table> the_table;
inline constexpr class_table& table = the_table.value;

// What stack_guard_owner may look at from a signal handler: slabs are only ever added, and each is published
// after it is complete.
struct slab_range {
  std::byte* base;
  std::size_t slot_size;
  std::uint32_t slots;
};
constexpr std::size_t max_published = 1u << 16;
struct published_slabs {
  atomic<std::size_t> count{0};
  slab_range* ranges = nullptr;
};
constinit published_slabs published;

void* map(std::size_t bytes, int more_flags = 0) {
  void* p =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | more_flags, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return p;
}

std::byte* map_slabs(std::size_t bytes) {
  void* p = map(bytes, MAP_STACK);
  // A huge page under a stack top would cost 2 MiB for a goroutine that needs one page.
  ::madvise(p, bytes, MADV_NOHUGEPAGE);
  return static_cast<std::byte*>(p);
}

// Makes room in the lists for n more slabs. Called under c->mutex.
void list_more_slabs(stack_class* c, std::size_t n) {
  if (c->slabs.size() + n > c->slabs.capacity()) c->slabs.reserve(std::max(c->slabs.size() + n, 2 * c->slabs.size()));
  c->free.reserve(c->slots() + n * c->slots_per_slab(), c->first_free + c->free_count);
  // No stack is made without this table, because nobody could name the goroutine that overflows it.
  lock_guard hold(table.mutex);
  if (!published.ranges) published.ranges = static_cast<slab_range*>(map(max_published * sizeof(slab_range)));
}

// Called under c->mutex; the lists have room.
void add_slab(stack_class* c, std::byte* base) noexcept {
  const std::size_t slots = c->slots_per_slab();
  c->slabs.push_back({base, c->all_slots()});
  c->bare += slots;

  lock_guard hold(table.mutex);
  std::size_t i = published.count.load(relaxed);
  if (i < max_published) {
    published.ranges[i] = {base, c->slot_size, static_cast<std::uint32_t>(slots)};
    published.count.store(i + 1, release);  // partner: stack_guard_owner
  }
}

// Adds n slabs, in one mapping. Called under c->mutex.
void add_slabs(stack_class* c, std::size_t n) {
  list_more_slabs(c, n);
  std::byte* base = map_slabs(n * c->slab_size());
  for (; n > 0; --n, base += c->slab_size()) add_slab(c, base);
}

// Adds n slabs, wherever each finds room: all of them, or none. Called under c->mutex.
void add_scattered_slabs(stack_class* c, std::size_t n) {
  list_more_slabs(c, n);
  std::vector<std::byte*> found;
  found.reserve(n);
  try {
    while (found.size() < n) found.push_back(map_slabs(c->slab_size()));
  } catch (const std::bad_alloc&) {
    for (std::byte* base : found) ::munmap(base, c->slab_size());
    throw;
  }
  for (std::byte* base : found) add_slab(c, base);
}

stack* header_of(std::byte* slot, std::size_t size, std::size_t index) noexcept {
  std::size_t colour = index * colour_step % colours * line;
  return reinterpret_cast<stack*>(slot + size - colour - sizeof(stack));
}

// Bare slots of one slab, of which the calling thread is about to make stacks. They are in neither set of the slab, and
// have no header.
struct claim {
  std::byte* base;
  std::size_t slab_number;
  slot_set slots;
  slot_set raw;  // which of these are raw
};

// Claims up to n of the first bare slots, so that the last slabs become free. Called under c->mutex; at least one slot
// must be bare.
claim claim_bare(stack_class* c, std::size_t n) noexcept {
  while ((c->slabs[c->first_bare].raw | c->slabs[c->first_bare].cold) == 0) ++c->first_bare;
  slab& in = c->slabs[c->first_bare];
  slot_set slots = in.raw | in.cold;
  for (slot_set rest = slots; rest != 0; rest &= rest - 1, --n) {
    if (n == 0) {
      slots &= ~rest;
      break;
    }
  }
  claim mine{in.base, c->first_bare, slots, in.raw & slots};
  in.raw &= ~slots;
  in.cold &= ~slots;
  c->bare -= static_cast<std::size_t>(std::popcount(slots));
  return mine;
}

template <class F>
void for_each_slot(slot_set slots, F f) {
  for (; slots != 0; slots &= slots - 1) f(static_cast<std::size_t>(std::countr_zero(slots)));
}

// Makes stacks of the claimed slots, with guards, and returns how many. Called without the lock, since the kernel takes
// its time.
std::size_t make_stacks(stack_class* c, const claim& mine, stack** out) noexcept {
  std::byte* pages[most_advised_at_once];
  std::size_t n = 0;
  for_each_slot(mine.raw, [&](std::size_t i) { pages[n++] = mine.base + i * c->slot_size; });
  guard_kind kinds[most_advised_at_once];
  install_guards(pages, n, mine.base, kinds);
  slot_set guards[guard_kinds]{};
  n = 0;
  for_each_slot(mine.raw, [&](std::size_t i) { guards[static_cast<int>(kinds[n++])] |= slot_set{1} << i; });
  slot_set canaries;
  {
    lock_guard hold(c->mutex);
    slab& in = c->slabs[mine.slab_number];
    for (int k = 0; k < guard_kinds; ++k) in.guards[k] |= guards[k];
    canaries = in.guards[static_cast<int>(guard_kind::canary)];
  }

  // All top pages are touched in one call, which costs less than a page fault for each.
  n = 0;
  for_each_slot(mine.slots, [&](std::size_t i) { pages[n++] = mine.base + (i + 1) * c->slot_size - page; });
  if (n > 1) advise_each(pages, n, MADV_POPULATE_WRITE);
  n = 0;
  for_each_slot(mine.slots, [&](std::size_t i) {
    std::byte* slot = mine.base + i * c->slot_size;
    auto* s = new (header_of(slot, c->slot_size, mine.slab_number * c->slots_per_slab() + i)) stack;
    s->lo = slot + page;
    s->hi = reinterpret_cast<std::byte*>(s);
    s->origin = c;
    s->slab_number = static_cast<std::uint32_t>(mine.slab_number);
    s->has_canary = canaries >> i & 1;
    if (s->has_canary) write_canary(s->lo);
    if (mine.raw >> i & 1) tell_valgrind_of_stack(s->lo, s->hi);
    out[n++] = s;
  });
  return n;
}

}  // namespace

stack_class* stack_class_for(std::size_t size) {
  constexpr std::size_t address_space = std::size_t{1} << 47;  // a stack for each P is reserved at once
  if (size > address_space) throw std::bad_alloc();
  // AddressSanitizer's frames are several times as large.
  std::size_t least = asan_running() ? 4 * min_stack_size : min_stack_size;
  size = std::max((size + page - 1) / page * page, least);
  std::size_t slot_size = ((size / page + 1) | 1) * page;
  class_table& t = table;
  lock_guard hold(t.mutex);
  stack_class** end = &t.first;
  for (; *end; end = &(*end)->next) {
    if ((*end)->slot_size == slot_size) return *end;
  }
  return *end = new stack_class(slot_size);
}

stack_class* next_stack_class(stack_class* c) noexcept {
  class_table& t = table;
  lock_guard hold(t.mutex);
  return c ? c->next : t.first;
}

std::size_t stack_size_of(const stack_class* c) noexcept { return c->slot_size - page; }

std::size_t stack_slots_per_slab(const stack_class* c) noexcept { return c->slots_per_slab(); }

std::size_t stack_in_use(stack_class* c) noexcept {
  lock_guard hold(c->mutex);
  return c->slots() - c->bare - c->free_count;
}

void stack_reserve(stack_class* c, std::size_t n) {
  lock_guard hold(c->mutex);
  if (c->slots() >= n) return;
  std::size_t slabs = (n - c->slots() - 1) / c->slots_per_slab() + 1;
  try {
    add_slabs(c, slabs);
  } catch (const std::bad_alloc&) {
    if (slabs == 1) throw;
    add_scattered_slabs(c, slabs);
  }
}

std::size_t stack_take(stack_class* c, stack** out, std::size_t n) {
  claim mine;
  {
    lock_guard hold(c->mutex);
    if (c->free_count > 0) {
      n = std::min(n, c->free_count);
      c->free_count -= n;
      c->untouched = std::min(c->untouched, c->free_count);
      std::copy_n(c->free_end(), n, out);
      return n;
    }
    if (c->bare == 0) add_slabs(c, 1);
    // A program with few goroutines must not pay for the memory of many.
    std::size_t in_use = c->slots() - c->bare;
    mine = claim_bare(c, std::clamp<std::size_t>(in_use / 8, 1, std::min(n, most_advised_at_once)));
  }
  return make_stacks(c, mine, out);
}

void stack_put(stack_class* c, stack* const* stacks, std::size_t n) noexcept {
  lock_guard hold(c->mutex);
  // The list has room for all slots, but not always behind the places of those that were cooled.
  if (c->first_free + c->free_count + n > c->free.capacity()) {
    std::copy_n(c->free.data() + c->first_free, c->free_count, c->free.data());
    c->first_free = 0;
  }
  std::copy_n(stacks, n, c->free_end());
  c->free_count += n;
}

namespace {

// Returns the slab in which `at` lies, or null. Async-signal-safe.
const slab_range* slab_around(const std::byte* at) noexcept {
  std::size_t n = published.count.load(acquire);
  for (const slab_range* r = published.ranges; r != published.ranges + n; ++r) {
    if (at >= r->base && at < r->base + r->slots * r->slot_size) return r;
  }
  return nullptr;
}

}  // namespace

void stack_check_canary(const G* g) noexcept {
  const stack* s = g->own_stack;
  if (!s->has_canary) return;
  // A frame may have gone past the canary without writing there. If `here` is outside the slab, it lies on some other
  // stack, which the goroutine changed to.
  auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
  const slab_range* below = here < s->lo ? slab_around(here) : nullptr;
  const bool beyond = below && below == slab_around(s->lo);
  if (!beyond && canary_intact(s->lo)) return;
  fatal(
      "goroutine {}: stack overflow, noticed late: it has no guard page. Its stack has {} bytes; "
      "go({{.stack_size = n}}, f), or options::stack_size for main, gives it more",
      g->id, stack_size_of(s->origin));
}

bool stack_is_left(const G* g, std::uintptr_t sp, const void* touched) noexcept {
  const stack* s = g->own_stack;
  const auto lo = reinterpret_cast<std::uintptr_t>(s->lo);
  if (sp >= lo) return false;
  const slab_range* slab = slab_around(s->lo);
  const std::uintptr_t base = slab ? reinterpret_cast<std::uintptr_t>(slab->base) : lo;
  // A goroutine without a guard page may have run through its neighbours first.
  const std::uintptr_t end = s->has_canary ? base : lo;
  if (sp + farthest_overflow <= end) return false;
  // Below the slab may lie any other stack. An overflow touches what is near the stack pointer.
  const auto at = reinterpret_cast<std::uintptr_t>(touched);
  return sp >= base || (at + farthest_overflow > sp && at < sp + farthest_overflow);
}

const G* stack_guard_owner(const void* address) noexcept {
  const auto* a = static_cast<const std::byte*>(address);
  const slab_range* r = slab_around(a);
  if (!r || static_cast<std::size_t>(a - r->base) % r->slot_size >= page) return nullptr;
  auto k = static_cast<std::size_t>(a - r->base) / r->slot_size;
  // The index from which the slot got its colour counts only the slots of its class.
  std::size_t first_of_class = 0;
  for (const slab_range* before = published.ranges; before != r; ++before) {
    if (before->slot_size == r->slot_size) first_of_class += before->slots;
  }
  return header_of(r->base + k * r->slot_size, r->slot_size, first_of_class + k)->user;
}

stack_counters stack_count() noexcept {
  stack_counters out;
  out.guards_madvise = guards_installed(guard_kind::madvise);
  out.guards_mprotect = guards_installed(guard_kind::mprotect);
  out.guards_none = guards_installed(guard_kind::canary);
  out.slots = out.guards_madvise + out.guards_mprotect + out.guards_none;
  return out;
}

}  // namespace weft::rt
