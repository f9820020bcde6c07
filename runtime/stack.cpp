#include "runtime/stack.hpp"

#include "runtime/sanitizer.hpp"
#include "runtime/thread.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

namespace weft::rt {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t slab_target = 16 * 1024 * 1024;
constexpr std::uint64_t canary_value = 0x7765667463616e61;  // "weftcana"
constexpr std::size_t canary_words = 8;

// Slots a colour apart differ by 5 lines, over 40 of a page's 64 lines: the rest of the page is for the frames of a
// parked goroutine.
constexpr std::size_t colours = 40, colour_step = 5, line = 64;

// A free stack without memory: its header is gone, too.
struct cold_stack {
  stack* at;
  std::byte* lo;
  bool has_canary;
};

std::size_t mprotect_budget() noexcept {
  std::size_t maps = 65530;
  if (std::FILE* f = std::fopen("/proc/sys/vm/max_map_count", "re")) {
    if (std::fscanf(f, "%zu", &maps) != 1) maps = 65530;
    std::fclose(f);
  }
  return maps / 2;  // two maps for each stack, and half of that for the program: its own maps, libraries, malloc
}

}  // namespace

struct stack_class {
  explicit stack_class(std::size_t bytes) noexcept : size(bytes) {}
  const std::size_t size;
  lock mutex{lock_rank::stacks};
  std::vector<std::byte*> slabs;
  std::size_t cut = 0;       // slots taken at least once, in the order of slabs
  std::vector<stack*> free;  // last in, first out; has room for every slot of the class
  std::vector<cold_stack> cold;

  std::size_t slots_per_slab() const noexcept { return std::clamp<std::size_t>(slab_target / size, 1, 64); }
  std::size_t slots() const noexcept { return slabs.size() * slots_per_slab(); }
};

namespace {

struct class_table {
  lock mutex{lock_rank::leaf};  // taken under a class's lock
  std::vector<std::unique_ptr<stack_class>> classes;
};

// Never destroyed: goroutines may still run while static destructors do.
union class_table_storage {
  class_table value;
  constexpr class_table_storage() noexcept : value() {}
  ~class_table_storage() {}
};
constinit class_table_storage the_table;
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

struct guard_counters {
  atomic<std::size_t> by_kind[3];
};
constinit guard_counters guards;
constinit atomic<bool> no_madvise_guard{false};

guard_kind install_guard(std::byte* lo) noexcept {
  if (!no_madvise_guard.load(relaxed)) {
    if (::madvise(lo, page, MADV_GUARD_INSTALL) == 0) return guard_kind::madvise;
    no_madvise_guard.store(true, relaxed);
  }
  static const std::size_t budget = mprotect_budget();
  if (guards.by_kind[static_cast<int>(guard_kind::mprotect)].load(relaxed) < budget / 2 &&
      ::mprotect(lo, page, PROT_NONE) == 0) {
    return guard_kind::mprotect;
  }
  return guard_kind::canary;
}

void* map(std::size_t bytes, int more_flags = 0) {
  void* p =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | more_flags, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return p;
}

std::byte* map_slab(std::size_t bytes) {
  void* p = map(bytes, MAP_STACK);
  // A huge page under a stack top would cost 2 MiB for a goroutine that needs one page.
  ::madvise(p, bytes, MADV_NOHUGEPAGE);
  return static_cast<std::byte*>(p);
}

// Under c->mutex.
void add_slab(stack_class* c) {
  std::size_t slots = c->slots_per_slab();
  if (c->slabs.size() == c->slabs.capacity()) c->slabs.reserve(std::max<std::size_t>(8, 2 * c->slabs.size()));
  std::size_t all = c->slots() + slots;
  if (c->free.capacity() < all) c->free.reserve(std::max(all, 2 * c->free.capacity()));
  {
    // A stack whose overflow nobody could name is none.
    lock_guard hold(table.mutex);
    if (!published.ranges) published.ranges = static_cast<slab_range*>(map(max_published * sizeof(slab_range)));
  }
  std::byte* base = map_slab(slots * c->size);
  c->slabs.push_back(base);

  lock_guard hold(table.mutex);
  std::size_t n = published.count.load(relaxed);
  if (n < max_published) {
    published.ranges[n] = {base, c->size, static_cast<std::uint32_t>(slots)};
    published.count.store(n + 1, release);  // partner: stack_guard_owner
  }
}

stack* header_of(std::byte* slot, std::size_t size, std::size_t index) noexcept {
  std::size_t colour = index * colour_step % colours * line;
  return reinterpret_cast<stack*>(slot + size - colour - sizeof(stack));
}

stack* write_header(stack_class* c, stack* at, std::byte* lo, bool has_canary) noexcept {
  auto* s = new (at) stack;
  s->lo = lo;
  s->hi = reinterpret_cast<std::byte*>(s);
  s->origin = c;
  s->has_canary = has_canary;
  if (has_canary) std::fill_n(reinterpret_cast<std::uint64_t*>(lo), canary_words, canary_value);
  return s;
}

// Under c->mutex; there is a slot that was never used.
stack* cut_slot(stack_class* c) noexcept {
  std::size_t per_slab = c->slots_per_slab();
  std::size_t index = c->cut++;
  std::byte* slot = c->slabs[index / per_slab] + index % per_slab * c->size;
  guard_kind kind = install_guard(slot);
  guards.by_kind[static_cast<int>(kind)].fetch_add(1, relaxed);
  stack* s = write_header(c, header_of(slot, c->size, index), slot + page, kind == guard_kind::canary);
  tell_valgrind_of_stack(s->lo, s->hi);
  return s;
}

}  // namespace

stack_class* stack_class_for(std::size_t size) {
  if (size > SIZE_MAX / 4) throw std::bad_alloc();
  // AddressSanitizer's frames are several times as large.
  std::size_t least = asan_running() ? 4 * min_stack_size : min_stack_size;
  size = std::max((size + page - 1) / page * page, least);
  class_table& t = table;
  lock_guard hold(t.mutex);
  for (auto& c : t.classes) {
    if (c->size == size) return c.get();
  }
  t.classes.push_back(std::make_unique<stack_class>(size));
  return t.classes.back().get();
}

std::size_t stack_size_of(const stack_class* c) noexcept { return c->size; }

std::size_t stack_slots_per_slab(const stack_class* c) noexcept { return c->slots_per_slab(); }

std::size_t stack_in_use(stack_class* c) noexcept {
  lock_guard hold(c->mutex);
  return c->cut - c->free.size() - c->cold.size();
}

void stack_reserve(stack_class* c, std::size_t n) {
  lock_guard hold(c->mutex);
  while (c->slots() < n) add_slab(c);
}

stack* stack_take(stack_class* c) {
  lock_guard hold(c->mutex);
  if (!c->free.empty()) {
    stack* s = c->free.back();
    c->free.pop_back();
    return s;
  }
  if (!c->cold.empty()) {
    cold_stack s = c->cold.back();
    c->cold.pop_back();
    return write_header(c, s.at, s.lo, s.has_canary);
  }
  if (c->cut == c->slots()) add_slab(c);
  return cut_slot(c);
}

std::size_t stack_take_free(stack_class* c, stack** out, std::size_t n) noexcept {
  lock_guard hold(c->mutex);
  n = std::min(n, c->free.size());
  std::copy(c->free.end() - static_cast<std::ptrdiff_t>(n), c->free.end(), out);
  c->free.resize(c->free.size() - n);
  return n;
}

void stack_put(stack_class* c, stack* const* stacks, std::size_t n) noexcept {
  lock_guard hold(c->mutex);
  c->free.insert(c->free.end(), stacks, stacks + n);  // within the capacity
}

bool stack_canaries_in_use() noexcept {
  return guards.by_kind[static_cast<int>(guard_kind::canary)].load(relaxed) != 0;
}

void stack_check_canary(const G* g) noexcept {
  if (!g->own_stack->has_canary) return;
  const auto* words = reinterpret_cast<const std::uint64_t*>(g->own_stack->lo);
  if (!std::all_of(words, words + canary_words, [](std::uint64_t w) { return w == canary_value; })) {
    fatal("goroutine {}: stack overflow: the canary of its stack of {} bytes was overwritten", g->id,
          g->own_stack->origin->size);
  }
}

const G* stack_guard_owner(const void* address) noexcept {
  const auto* a = static_cast<const std::byte*>(address);
  std::size_t n = published.count.load(acquire);
  std::size_t first_of_class = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const slab_range& r = published.ranges[i];
    if (a < r.base || a >= r.base + r.slots * r.slot_size) continue;
    auto k = static_cast<std::size_t>(a - r.base) / r.slot_size;
    if (static_cast<std::size_t>(a - r.base) % r.slot_size >= page) return nullptr;
    // The index that coloured the slot counts the slots of its class only.
    for (std::size_t j = 0; j < i; ++j) {
      if (published.ranges[j].slot_size == r.slot_size) first_of_class += published.ranges[j].slots;
    }
    return header_of(r.base + k * r.slot_size, r.slot_size, first_of_class + k)->user;
  }
  return nullptr;
}

namespace {

// Under c->mutex: the last of the free stacks loses its memory.
std::size_t cool(stack_class* c) noexcept {
  stack* s = c->free.back();
  c->free.pop_back();
  if (tsan_running() && s->fiber) __tsan_destroy_fiber(s->fiber);
  c->cold.push_back({s, s->lo, s->has_canary});
  auto* end = s->lo - page + c->size;
  auto bytes = static_cast<std::size_t>(end - s->lo);
  if (asan_running()) __asan_unpoison_memory_region(c->cold.back().lo, bytes);
  ::madvise(c->cold.back().lo, bytes, MADV_DONTNEED);
  return bytes;
}

}  // namespace

std::size_t stack_release_free_pages() noexcept {
  std::size_t bytes = 0;
  class_table& t = table;
  for (std::size_t i = 0;; ++i) {
    stack_class* c;
    {
      lock_guard hold(t.mutex);
      if (i >= t.classes.size()) return bytes;
      c = t.classes[i].get();
    }
    // A few at a time, so that nobody who takes a stack is held up by a million calls of madvise.
    constexpr std::size_t batch = 64;
    for (bool more = true; more;) {
      lock_guard hold(c->mutex);
      try {
        std::size_t want = c->cold.size() + batch;
        if (c->cold.capacity() < want) c->cold.reserve(std::max(want, 2 * c->cold.capacity()));
      } catch (const std::bad_alloc&) {
        break;
      }
      for (std::size_t k = 0; k < batch && !c->free.empty(); ++k) bytes += cool(c);
      more = !c->free.empty();
    }
  }
}

stack_counters stack_count() noexcept {
  stack_counters out;
  class_table& t = table;
  lock_guard hold_table(t.mutex);
  out.guards_madvise = guards.by_kind[0].load(relaxed);
  out.guards_mprotect = guards.by_kind[1].load(relaxed);
  out.guards_none = guards.by_kind[2].load(relaxed);
  out.slots = out.guards_madvise + out.guards_mprotect + out.guards_none;
  return out;
}

}  // namespace weft::rt
