// Queues of goroutines that are ready: a P's own, and the global one.

#include "sched/runqueues.hpp"

#include "runtime/prefetch.hpp"
#include "sched/newcomers.hpp"

#include <algorithm>

namespace weft::rt {

namespace {

// The ring is full: moves half of it, and g, to the global queue. False: a thief made room meanwhile.
bool put_slow(P* p, G* g) noexcept {
  run_queue::half batch;
  if (!p->runq.take_half(batch)) return false;
  lock_guard hold(sched.mutex);
  for (G* older : batch) sched.global.push_back(older);
  sched.global.push_back(g);
  sched.global_size.store(static_cast<std::uint32_t>(sched.global.size()), seq_cst);
  return true;
}

}  // namespace

void runqput_full(P* p, G* g) noexcept {
  while (!put_slow(p, g) && !p->runq.put(g, run_queue::barrier::publish)) {}
}

void global_put(G* g) noexcept {
  sched.global.push_back(g);
  sched.global_size.store(static_cast<std::uint32_t>(sched.global.size()), seq_cst);
}

void global_put_first(g_list& list) noexcept {
  sched.global.push_front(list);
  sched.global_size.store(static_cast<std::uint32_t>(sched.global.size()), seq_cst);
}

void global_put_queue_of(P* p) noexcept {
  bool inherit;
  while (G* g = p->runq.get(&inherit)) global_put(g);
}

namespace {

template <bool (run_queue::*Empty)() const noexcept>
queued look(std::uint32_t left_behind) noexcept {
  if (sched.global_size.load(seq_cst) > left_behind) return queued::work;
  if (newcomers_may_begin()) return queued::work;
  queued found = queued::nothing;
  std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (sched.idle_mask.has(i)) continue;
    const P* p = sched.all_ps[i].load(acquire);
    if ((p->runq.*Empty)()) continue;
    if (p->spoils_here.load(relaxed) == spoils::work) return queued::work;
    found = queued::crumbs;
  }
  return found;
}

}  // namespace

queued look_at_queues() noexcept { return look<&run_queue::empty>(0); }
queued look_beyond_next(std::uint32_t left_behind) noexcept { return look<&run_queue::ring_empty>(left_behind); }

G* global_one(P* p, std::uint32_t max) noexcept {
  if (sched.global_size.load(relaxed) == 0) return nullptr;
  G* g;
  {
    lock_guard hold(sched.mutex);
    g = global_get(p, max);
  }
  p->cold.load_ahead_of(p->runq.head());
  return g;
}

namespace {

// A fair share, but at most half a ring.
std::uint32_t share_of(std::uint32_t size) noexcept {
  return std::min({size, size / sched.procs.load(relaxed) + 1, run_queue_size / 2});
}

// Moves n goroutines from the global queue, which held `size`, into p's ring, which has room for them.
void take_batch(P* p, std::uint32_t n, std::uint32_t size) noexcept {
  for (std::uint32_t i = 0; i < n; ++i) {
    G* g = sched.global.pop_front();
    if (size >= cold_behind) p->cold.add(p->runq.tail(), g->context);  // before a thief can find g and run it
    bool fits = p->runq.put(g, run_queue::barrier::no);
    WEFT_CHECK(fits, "P {} has room for {} and took no goroutine", p->id, p->runq.room());
    (void)fits;
  }
  if (n > 0) p->batch_end.store(p->runq.tail(), relaxed);
  p->global_waits_since = 0;
  // release, after the stores into the ring: an M that looks everywhere (S3) reads this first, and then the rings.
  sched.global_size.store(static_cast<std::uint32_t>(sched.global.size()), release);
}

}  // namespace

G* global_get(P* p, std::uint32_t max) noexcept {
  auto size = static_cast<std::uint32_t>(sched.global.size());
  if (size == 0) return nullptr;
  std::uint32_t n = share_of(size);
  if (max > 0) n = std::min(n, max);
  n = p->yielded_behind_batch ? 1 : std::min(n, p->runq.room() + 1);  // no batch behind those that have yielded
  G* first = sched.global.pop_front();
  if (size >= cold_behind && first->context) load_lines(first->context, lines_of_frames);
  take_batch(p, n - 1, size);
  return first;
}

// An M at S3 reads global_size first, and then the rings. It misses none of those that move here: global_size is not
// zero before, and zero afterwards only if the ring was empty and the whole queue has come into it.
void trade_ring_for_batch(P* p) noexcept {
  p->yielded_behind_batch = false;
  lock_guard hold(sched.mutex);
  const auto size = static_cast<std::uint32_t>(sched.global.size());
  if (size == 0) return;
  while (G* g = p->runq.get_from_ring()) sched.global.push_back(g);
  take_batch(p, share_of(size), size);
}

}  // namespace weft::rt
