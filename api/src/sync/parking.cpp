#include "api/src/sync/parking.hpp"

#include "sched/park.hpp"

#include <array>

namespace weft::detail {

namespace {
constinit std::array<sync_bucket, std::size_t{1} << mutex_bell_bits> buckets;
}

sync_bucket& bucket_number(std::size_t i) noexcept { return buckets[i]; }

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
