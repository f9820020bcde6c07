#include "runtime/g_pool.hpp"

#include "runtime/lock.hpp"
#include "runtime/never_destroyed.hpp"
#include "runtime/slab_pool.hpp"

#include <algorithm>
#include <cstdint>
#include <new>

namespace weft::rt {

namespace {

// A late waker that looks at a G whose memory was given back reads zeros: an idle goroutine without a ticket. Zeros are
// as good as a new G (spawning sets what else it needs). So no G is constructed there again, since a late waker might
// look at it meanwhile. But the G begins with a higher wait number than any G that lost its memory, so that no ticket
// of an earlier life is valid.
struct pool {
  lock mutex{lock_rank::stacks};
  slab_pool<G> gs;
  std::uint64_t first_wake = 0;  // wake word of a G that is made
};

constinit never_destroyed<pool> the_pool;
inline constexpr pool& all = the_pool.value;

constinit atomic<std::size_t> in_use{0};  // changed under the pool's lock

G* make_g() {
  return all.gs.make([](void* at, bool first) {
    G* g = first ? new (at) G : std::launder(static_cast<G*>(at));
    g->wake.store(all.first_wake, relaxed);
    return g;
  });
}

}  // namespace

G* g_take(std::size_t limit) {
  lock_guard hold(all.mutex);
  if (in_use.load(relaxed) >= limit) return nullptr;
  G* g = all.gs.free_count() > 0 ? all.gs.take_free() : make_g();
  in_use.store(in_use.load(relaxed) + 1, relaxed);
  return g;
}

std::size_t g_take_free(G** out, std::size_t n, std::size_t limit) noexcept {
  lock_guard hold(all.mutex);
  std::size_t used = in_use.load(relaxed);
  n = std::min({n, all.gs.free_count(), limit > used ? limit - used : 0});
  in_use.store(used + n, relaxed);
  all.gs.take_free(out, n);
  return n;
}

void g_put(G* const* gs, std::size_t n) noexcept {
  lock_guard hold(all.mutex);
  all.gs.put(gs, n);
  in_use.store(in_use.load(relaxed) - n, relaxed);
}

std::size_t g_in_use() noexcept { return in_use.load(relaxed); }

void g_release_free() noexcept {
  lock_guard hold(all.mutex);
  all.gs.release_free([](const G* g) { all.first_wake = std::max(all.first_wake, g->wake.load(relaxed) | 1); });
}

void for_each_g(g_visitor visit, void* arg) {
  all.gs.for_each([=](G* g) { visit(g, arg); });
}

}  // namespace weft::rt
