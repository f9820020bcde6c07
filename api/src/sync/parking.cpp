#include "api/src/sync/parking.hpp"

#include "runtime/deadline_clock.hpp"
#include "sched/park.hpp"

#include <array>

namespace weft::detail {

namespace {
constinit std::array<sync_bucket, std::size_t{1} << mutex_bell_bits> buckets;
constexpr std::uint64_t shortest_between_meetings_ns = 300;
}  // namespace

sync_bucket& bucket_number(std::size_t i) noexcept { return buckets[i]; }

// Sleeping takes longer than a lock is mostly held for. So a goroutine had better wait awake if the holder may well be
// running, on another P, and nothing else waits for its own P (Go: sync_runtime_canSpin). But where two Ps meet at
// locks that are held for some ns, one P alone does more than both. So it sleeps if this thread met another one at a
// lock only a moment ago: then one of the Ps comes to rest.
bool may_look_longer() noexcept {
#if defined(WEFT_INTERLEAVE)
  return false;  // a look is a step there like any other, and time stands still
#endif
  const rt::M* m = rt::this_m();
  const rt::P* p = rt::p_of(m);
  if (!p || rt::sched.procs.load(rt::relaxed) - rt::sched.idle_ps.load(rt::relaxed) < 2 || !p->runq.empty())
    return false;
  return rt::cpu_ticks() - m->met_at_lock > shortest_between_meetings_ns * rt::cpu_tick_rate.per_us / 1000;
}

void note_met_at_lock() noexcept {
  if (rt::M* m = rt::this_m()) m->met_at_lock = rt::cpu_ticks();
}

void spin_backoff() noexcept {
  constexpr int pauses = 32;  // about 1 µs: in that time an uncontended word is locked and unlocked 70 times
  for (int i = 0; i < pauses; ++i) rt::cpu_relax();
}

void push_back(sync_queue& q, sync_waiter& w) noexcept {
  w.queued = true;
  if (!q.first) {
    q.first = w.next = w.prev = &w;
    return;
  }
  w.next = q.first;
  w.prev = q.first->prev;
  w.prev->next = &w;
  w.next->prev = &w;
}

void remove(sync_queue& q, sync_waiter& w) noexcept {
  WEFT_CHECK(w.queued, "goroutine {} leaves a queue it is not in", w.g->id);
  w.queued = false;
  if (w.next == &w) {
    q.first = nullptr;
    return;
  }
  w.prev->next = w.next;
  w.next->prev = w.prev;
  if (q.first == &w) q.first = w.next;
}

void wake_list::claim_all(sync_queue& q) noexcept {
  while (claim_first(q)) {}
}

bool wake_list::claim_first(sync_queue& q) noexcept {
  while (sync_waiter* w = q.first) {
    remove(q, *w);
    if (claim(*w)) return true;
  }
  return false;
}

wake_list::~wake_list() {
  while (rt::G* g = threads_.pop_front()) rt::ready(g);
  if (goroutines_.size() == 1) {
    rt::ready(goroutines_.pop_front());
  } else {
    rt::ready_all(goroutines_);
  }
}

void block(rt::runtime_scope& scope, rt::goroutine_lock& held, rt::wait_reason why) noexcept {
  scope.resumed_on(rt::park(scope.m(), held, why));
}

}  // namespace weft::detail
