#include "runtime/g_pool.hpp"

#include "runtime/lock.hpp"
#include "runtime/mapped_array.hpp"
#include "runtime/never_destroyed.hpp"

#include <algorithm>
#include <cstdint>
#include <new>
#include <sys/mman.h>

namespace weft::rt {

namespace {

// A slab is aligned to its size and cut into blocks, of which the first is its own header. Slabs are only ever added,
// each after the last: for_each_g follows the links without a lock.
//
// A block whose Gs are all free can lose its memory (g_release_free). Whoever looks at a G there, late, reads zeros: an
// idle goroutine without a ticket. That is a G as good as a new one (spawning sets what else it needs), so none is
// constructed there again, under the eyes of those who come late. But it begins with a higher wait number than any G
// that lost its memory, so that no ticket of an earlier life is valid.
constexpr std::size_t slab_bytes = 1024 * 1024;
constexpr std::size_t block_bytes = 16 * 1024;
constexpr std::size_t blocks = slab_bytes / block_bytes;
constexpr std::size_t gs_per_block = block_bytes / sizeof(G);
constexpr std::size_t gs_per_slab = (blocks - 1) * gs_per_block;

struct g_slab {
  atomic<g_slab*> next{nullptr};
  // of a block; the first is not used
  atomic<std::uint16_t> cut[blocks] = {};  // Gs there
  std::uint16_t constructed[blocks] = {};  // since the slab was mapped
  std::uint16_t free[blocks] = {};         // g_release_free's own count
};
static_assert(sizeof(g_slab) <= block_bytes);

std::byte* block_at(g_slab* s, std::size_t i) noexcept { return reinterpret_cast<std::byte*>(s) + i * block_bytes; }
G* g_at(g_slab* s, std::size_t block, std::size_t i) noexcept {
  return reinterpret_cast<G*>(block_at(s, block) + i * sizeof(G));
}
g_slab* slab_of(const G* g) noexcept {
  return reinterpret_cast<g_slab*>(reinterpret_cast<std::uintptr_t>(g) & ~(slab_bytes - 1));
}
std::size_t block_of(const G* g) noexcept { return reinterpret_cast<std::uintptr_t>(g) % slab_bytes / block_bytes; }

struct pool {
  lock mutex{lock_rank::stacks};
  mapped_array<G*> free;  // last in, first out; has room for every G
  std::size_t free_count = 0;
  g_slab* last = nullptr;
  std::size_t slabs = 0;
  // Where the next G is made: no block before it has room.
  g_slab* cutting = nullptr;
  std::size_t block = 1;
  std::uint64_t first_wake = 0;  // of a G that is made
};

constinit never_destroyed<pool> the_pool;
inline constexpr pool& all = the_pool.value;

constinit atomic<g_slab*> first_slab{nullptr};
constinit atomic<std::size_t> in_use{0};  // changed under the pool's lock

// All that follows: under the pool's lock.

void add_slab() {
  all.free.reserve((all.slabs + 1) * gs_per_slab, all.free_count);
  // Twice as much, for one that is aligned.
  void* at =
      ::mmap(nullptr, 2 * slab_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  auto begin = reinterpret_cast<std::uintptr_t>(at);
  std::uintptr_t aligned = (begin + slab_bytes - 1) & ~(slab_bytes - 1);
  if (aligned > begin) ::munmap(at, aligned - begin);
  ::munmap(reinterpret_cast<void*>(aligned + slab_bytes), begin + slab_bytes - aligned);
  auto* s = new (reinterpret_cast<void*>(aligned)) g_slab;
  (all.last ? all.last->next : first_slab).store(s, release);  // partner: for_each_g
  all.last = all.cutting = s;
  all.block = 1;
  ++all.slabs;
}

G* make_g() {
  // A block that has room, or a new slab's first.
  while (!all.cutting || all.cutting->cut[all.block].load(relaxed) == gs_per_block) {
    if (all.cutting && ++all.block < blocks) continue;
    all.block = 1;
    if (g_slab* next = all.cutting ? all.cutting->next.load(relaxed) : nullptr) {
      all.cutting = next;
    } else {
      add_slab();
    }
  }
  std::uint16_t i = all.cutting->cut[all.block].load(relaxed);
  G* g = g_at(all.cutting, all.block, i);
  if (std::uint16_t& n = all.cutting->constructed[all.block]; i == n) {
    ++n;
    g = new (g) G;
  }
  g->wake.store(all.first_wake, relaxed);
  all.cutting->cut[all.block].store(static_cast<std::uint16_t>(i + 1), release);  // partner: for_each_g
  return g;
}

// Blocks of s that hold nothing but free Gs.
void release_blocks(g_slab* s) noexcept {
  for (std::size_t b = 1; b < blocks; ++b) {
    if (s->free[b] == 0 || s->free[b] != s->cut[b].load(relaxed)) continue;
    s->cut[b].store(0, release);
    ::madvise(block_at(s, b), block_bytes, MADV_DONTNEED);
  }
}

}  // namespace

G* g_take(std::size_t limit) {
  lock_guard hold(all.mutex);
  if (in_use.load(relaxed) >= limit) return nullptr;
  G* g = all.free_count > 0 ? all.free[--all.free_count] : make_g();
  in_use.store(in_use.load(relaxed) + 1, relaxed);
  return g;
}

std::size_t g_take_free(G** out, std::size_t n, std::size_t limit) noexcept {
  lock_guard hold(all.mutex);
  std::size_t used = in_use.load(relaxed);
  n = std::min({n, all.free_count, limit > used ? limit - used : 0});
  in_use.store(used + n, relaxed);
  all.free_count -= n;
  std::copy_n(all.free.data() + all.free_count, n, out);
  return n;
}

void g_put(G* const* gs, std::size_t n) noexcept {
  lock_guard hold(all.mutex);
  std::copy_n(gs, n, all.free.data() + all.free_count);  // within the capacity
  all.free_count += n;
  in_use.store(in_use.load(relaxed) - n, relaxed);
}

std::size_t g_in_use() noexcept { return in_use.load(relaxed); }

void g_release_free() noexcept {
  lock_guard hold(all.mutex);
  if (all.free_count < gs_per_block) return;
  for (g_slab* s = first_slab.load(relaxed); s; s = s->next.load(relaxed))
    std::fill_n(s->free, blocks, std::uint16_t{0});
  G** begin = all.free.data();
  G** end = begin + all.free_count;
  std::for_each(begin, end, [](G* g) { ++slab_of(g)->free[block_of(g)]; });
  G** kept = std::remove_if(begin, end, [](G* g) {
    g_slab* s = slab_of(g);
    std::size_t b = block_of(g);
    if (s->free[b] != s->cut[b].load(relaxed)) return false;
    all.first_wake = std::max(all.first_wake, g->wake.load(relaxed) | 1);
    return true;
  });
  if (kept == end) return;
  all.free_count = static_cast<std::size_t>(kept - begin);
  for (g_slab* s = first_slab.load(relaxed); s; s = s->next.load(relaxed)) release_blocks(s);
  all.free.release_beyond(all.free_count);
  all.cutting = first_slab.load(relaxed);
  all.block = 1;
}

void for_each_g(g_visitor visit, void* arg) noexcept {
  for (g_slab* s = first_slab.load(acquire); s; s = s->next.load(acquire)) {
    for (std::size_t b = 1; b < blocks; ++b) {
      std::size_t n = s->cut[b].load(acquire);
      for (std::size_t i = 0; i < n; ++i) visit(std::launder(g_at(s, b, i)), arg);
    }
  }
}

}  // namespace weft::rt
