#include "runtime/g_pool.hpp"

#include "runtime/lock.hpp"

#include <algorithm>
#include <new>
#include <sys/mman.h>
#include <vector>

namespace weft::rt {

namespace {

constexpr std::size_t slab_bytes = 1024 * 1024;

// A slab begins with its own header. Slabs are only ever added, each after the last: for_each_g follows the links
// without a lock.
struct slab {
  atomic<slab*> next{nullptr};
  atomic<std::size_t> cut{0};  // Gs made so far
};
constexpr std::size_t first_g = (sizeof(slab) + alignof(G) - 1) / alignof(G) * alignof(G);
constexpr std::size_t gs_per_slab = (slab_bytes - first_g) / sizeof(G);

G* g_at(slab* s, std::size_t i) noexcept {
  return reinterpret_cast<G*>(reinterpret_cast<std::byte*>(s) + first_g + i * sizeof(G));
}

struct pool {
  lock mutex{lock_rank::stacks};
  std::vector<G*> free;  // last in, first out; has room for every G
  slab* last = nullptr;
  std::size_t made = 0;
};

// Never destroyed: goroutines may still run while static destructors do.
union pool_storage {
  pool value;
  constexpr pool_storage() noexcept : value() {}
  ~pool_storage() {}
};
constinit pool_storage the_pool;

constinit atomic<slab*> first_slab{nullptr};
constinit atomic<std::size_t> in_use{0};  // changed under the pool's lock

// Under the pool's lock.
void add_slab(pool& all) {
  std::size_t capacity = all.made + gs_per_slab;
  if (all.free.capacity() < capacity) all.free.reserve(std::max(capacity, 2 * all.free.capacity()));
  void* at = ::mmap(nullptr, slab_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  auto* s = new (at) slab;
  (all.last ? all.last->next : first_slab).store(s, release);  // partner: for_each_g
  all.last = s;
}

}  // namespace

G* g_take(std::size_t limit) {
  pool& all = the_pool.value;
  lock_guard hold(all.mutex);
  if (in_use.load(relaxed) >= limit) return nullptr;
  if (!all.free.empty()) {
    G* g = all.free.back();
    all.free.pop_back();
    in_use.store(in_use.load(relaxed) + 1, relaxed);
    return g;
  }
  if (!all.last || all.last->cut.load(relaxed) == gs_per_slab) add_slab(all);
  std::size_t i = all.last->cut.load(relaxed);
  G* g = new (g_at(all.last, i)) G;
  all.last->cut.store(i + 1, release);  // partner: for_each_g
  ++all.made;
  in_use.store(in_use.load(relaxed) + 1, relaxed);
  return g;
}

std::size_t g_take_free(G** out, std::size_t n, std::size_t limit) noexcept {
  pool& all = the_pool.value;
  lock_guard hold(all.mutex);
  std::size_t used = in_use.load(relaxed);
  n = std::min({n, all.free.size(), limit > used ? limit - used : 0});
  in_use.store(used + n, relaxed);
  std::copy(all.free.end() - static_cast<std::ptrdiff_t>(n), all.free.end(), out);
  all.free.resize(all.free.size() - n);
  return n;
}

void g_put(G* const* gs, std::size_t n) noexcept {
  pool& all = the_pool.value;
  lock_guard hold(all.mutex);
  all.free.insert(all.free.end(), gs, gs + n);  // within the capacity
  in_use.store(in_use.load(relaxed) - n, relaxed);
}

std::size_t g_in_use() noexcept { return in_use.load(relaxed); }

void for_each_g(g_visitor visit, void* arg) noexcept {
  for (slab* s = first_slab.load(acquire); s; s = s->next.load(acquire)) {
    std::size_t n = s->cut.load(acquire);
    for (std::size_t i = 0; i < n; ++i) visit(std::launder(g_at(s, i)), arg);
  }
}

}  // namespace weft::rt
