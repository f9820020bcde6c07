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

// Slots a colour apart differ by 5 lines (a G and a bit), over 40 of a page's 64 lines: the rest of the page is
// for the closure and the frames of a parked goroutine.
constexpr std::size_t colours = 40, colour_step = 5, line = 64;

struct slab {
  std::byte* base;
  std::uint32_t slots;
  std::uint32_t cut;  // slots handed out at least once
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
  std::vector<slab> slabs;
  std::vector<G*> free;  // last in, first out; has room for every slot of the class
};

namespace {

struct class_table {
  lock mutex{lock_rank::leaf};  // taken under a class's lock
  std::vector<std::unique_ptr<stack_class>> classes;
};

// Never destroyed: goroutines may still run while static destructors do.
class_table& table() noexcept {
  static class_table* t = new class_table;
  return *t;
}

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
constinit atomic<std::size_t> slots_cut{0};
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
  auto* words = reinterpret_cast<std::uint64_t*>(lo + page);
  std::fill_n(words, canary_words, canary_value);
  return guard_kind::canary;
}

std::byte* map_slab(std::size_t bytes) {
  void* p =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  // A huge page under a stack top would cost 2 MiB for a goroutine that needs one page.
  ::madvise(p, bytes, MADV_NOHUGEPAGE);
  return static_cast<std::byte*>(p);
}

// Caller holds c->mutex.
slab& slab_with_room(stack_class* c) {
  if (!c->slabs.empty() && c->slabs.back().cut < c->slabs.back().slots) return c->slabs.back();
  std::size_t slots = std::clamp<std::size_t>(slab_target / c->size, 1, 64);
  c->slabs.reserve(c->slabs.size() + 1);
  std::size_t all = (c->slabs.size() + 1) * slots;
  if (c->free.capacity() < all) c->free.reserve(std::max(all, 2 * c->free.capacity()));
  std::byte* base = map_slab(slots * c->size);
  c->slabs.push_back({base, static_cast<std::uint32_t>(slots), 0});

  lock_guard hold(table().mutex);
  if (!published.ranges) {
    void* p = ::mmap(nullptr, max_published * sizeof(slab_range), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) published.ranges = static_cast<slab_range*>(p);
  }
  std::size_t n = published.count.load(relaxed);
  if (published.ranges && n < max_published) {
    published.ranges[n] = {base, c->size, static_cast<std::uint32_t>(slots)};
    published.count.store(n + 1, release);  // partner: stack_guard_owner
  }
  return c->slabs.back();
}

std::byte* header_of(std::byte* slot, std::size_t size, std::size_t index) noexcept {
  std::size_t colour = index * colour_step % colours * line;
  return slot + size - colour - sizeof(G);
}

}  // namespace

const char* describe(g_state s) noexcept {
  switch (s) {
    case g_state::idle: return "idle";
    case g_state::runnable: return "runnable";
    case g_state::running: return "running";
    case g_state::syscall: return "syscall";
    case g_state::waiting: return "waiting";
    case g_state::dead: return "dead";
    case g_state::abandoned: return "abandoned";
  }
  return "?";
}

stack_class* stack_class_for(std::size_t size) {
  if (size > SIZE_MAX / 4) throw std::bad_alloc();
  size = std::max((size + page - 1) / page * page, min_stack_size);
  class_table& t = table();
  lock_guard hold(t.mutex);
  for (auto& c : t.classes) {
    if (c->size == size) return c.get();
  }
  t.classes.push_back(std::make_unique<stack_class>(size));
  return t.classes.back().get();
}

std::size_t stack_size_of(const stack_class* c) noexcept { return c->size; }

G* stack_take(stack_class* c) {
  std::byte* slot;
  std::size_t index;
  {
    c->mutex.acquire_lock();
    if (!c->free.empty()) {
      G* g = c->free.back();
      c->free.pop_back();
      c->mutex.release_lock();
      return g;
    }
    try {
      slab& s = slab_with_room(c);
      index = (c->slabs.size() - 1) * s.slots + s.cut;
      slot = s.base + s.cut * c->size;
      guard_kind kind = install_guard(slot);
      guards.by_kind[static_cast<int>(kind)].fetch_add(1, relaxed);
      G* g = new (header_of(slot, c->size, index)) G;
      g->stack_lo = slot + page;
      g->stack_hi = reinterpret_cast<std::byte*>(g);
      g->origin = c;
      g->has_canary = kind == guard_kind::canary;
      slots_cut.fetch_add(1, relaxed);
      ++s.cut;  // from here on for_each_g visits it
      c->mutex.release_lock();
      return g;
    } catch (...) {
      c->mutex.release_lock();
      throw;
    }
  }
}

std::size_t stack_take_free(stack_class* c, G** out, std::size_t n) noexcept {
  lock_guard hold(c->mutex);
  n = std::min(n, c->free.size());
  std::copy(c->free.end() - static_cast<std::ptrdiff_t>(n), c->free.end(), out);
  c->free.resize(c->free.size() - n);
  return n;
}

void stack_put(stack_class* c, G* const* gs, std::size_t n) noexcept {
  lock_guard hold(c->mutex);
  c->free.insert(c->free.end(), gs, gs + n);  // within the capacity
}

std::size_t stack_slots() noexcept { return slots_cut.load(relaxed); }

void stack_check_canary(const G* g) noexcept {
  if (!g->has_canary) return;
  const auto* words = reinterpret_cast<const std::uint64_t*>(g->stack_lo);
  if (!std::all_of(words, words + canary_words, [](std::uint64_t w) { return w == canary_value; })) {
    fatal("goroutine {}: stack overflow: the canary of its stack of {} bytes was overwritten", g->id, g->origin->size);
  }
}

void for_each_g(g_visitor visit, void* arg) noexcept {
  class_table& t = table();
  for (std::size_t i = 0;; ++i) {
    stack_class* c;
    {
      lock_guard hold(t.mutex);
      if (i >= t.classes.size()) return;
      c = t.classes[i].get();
    }
    lock_guard hold(c->mutex);
    std::size_t first = 0;
    for (const slab& s : c->slabs) {
      for (std::uint32_t k = 0; k < s.cut; ++k) {
        visit(std::launder(reinterpret_cast<G*>(header_of(s.base + k * c->size, c->size, first + k))), arg);
      }
      first += s.slots;
    }
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
    return reinterpret_cast<const G*>(header_of(r.base + k * r.slot_size, r.slot_size, first_of_class + k));
  }
  return nullptr;
}

std::size_t stack_release_free_pages() noexcept {
  std::size_t bytes = 0;
  class_table& t = table();
  for (std::size_t i = 0;; ++i) {
    stack_class* c;
    {
      lock_guard hold(t.mutex);
      if (i >= t.classes.size()) return bytes;
      c = t.classes[i].get();
    }
    // A few at a time, the coldest first, so that spawning is not held up by a million calls of madvise.
    constexpr std::size_t batch = 64;
    for (std::size_t from = 0;; from += batch) {
      lock_guard hold(c->mutex);
      std::size_t to = std::min(from + batch, c->free.size());
      for (std::size_t k = from; k < to; ++k) {
        const G* g = c->free[k];
        auto top = reinterpret_cast<std::uintptr_t>(g) & ~(page - 1);
        auto* lo = g->stack_lo + (g->has_canary ? page : 0);
        std::size_t n = top - reinterpret_cast<std::uintptr_t>(lo);
        if (::madvise(lo, n, MADV_DONTNEED) == 0) bytes += n;
      }
      if (to == c->free.size()) break;
    }
  }
}

stack_counters stack_count() noexcept {
  stack_counters out;
  class_table& t = table();
  lock_guard hold_table(t.mutex);
  out.guards_madvise = guards.by_kind[0].load(relaxed);
  out.guards_mprotect = guards.by_kind[1].load(relaxed);
  out.guards_none = guards.by_kind[2].load(relaxed);
  out.slots = stack_slots();
  return out;
}

}  // namespace weft::rt
