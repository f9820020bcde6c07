// Turns: how the goroutines that come from the poller, from timers and from the global queue share a P with those in
// its own queue, so that none of them waits for ever (docs/preemption.md).

#include "sched/turns.hpp"

#include "sched/runqueues.hpp"

#include <utility>

namespace weft::rt {

namespace {

constexpr std::uint64_t passes_every = 8;  // dispatches
constexpr nanos passes_after = millisecond;
constexpr nanos waits_for_long = 10 * millisecond;

}  // namespace

// A goroutine woken by the poller or by a timer may run ahead of those that wait, but not every time: two goroutines
// that keep waking each other, or timers that are due again as soon as they have run, or a connection that always has
// more to read, would otherwise keep the P to themselves. In between, those that wait must have had a turn:
// `passes_every` dispatches, or one goroutine that used up its time slice (note_slice_used_up), or, once `passes_after`
// has passed, any at all.
bool may_pass(P* p, nanos now) noexcept {
  const std::uint64_t at = dispatches(p), since = at - p->passed_at;
  const bool soon = p->passed_at != 0 && since < passes_every;
  if (soon && (since < 2 || now - p->passed_when < passes_after)) return false;
  p->passed_at = at;
  p->passed_when = now;
  p->pass_slice = p->sched_tick.load(relaxed) + 1;
  return true;
}

// Takes a goroutine from the global queue if that was never empty at this P's looks for `waits_for_long`, and this P
// has not taken from it. The queue's regular turn comes once in so many time slices. If something such as a ticker ends
// time slices before they are used up, and the goroutines that share a slice run for long, that turn would take seconds
// to come. The first look only notes the time: a goroutine that has used up its time slice, and gave way to the others,
// lies in the global queue a moment later, and must not come before them.
G* overdue_one(P* p, nanos now) noexcept {
  if (sched.global_size.load(relaxed) == 0) {
    p->global_waits_since = 0;
    return nullptr;
  }
  if (p->global_waits_since == 0) p->global_waits_since = now;
  if (now - p->global_waits_since < waits_for_long || batch_waits(p)) return nullptr;
  return global_one(p, 0);
}

// The same for the head of p's ring. It waits for long if goroutines that the poller wakes, and goroutines that make
// each other runnext, begin one time slice after the other: no slice is ever used up then. The one that is next goes
// behind the ring, so that all of the ring has its turn now, and not one goroutine at a time.
G* overdue_in_ring(P* p, nanos now) noexcept {
  const bool empty = p->runq.ring_empty();
  const std::uint32_t head = p->runq.head(), before = std::exchange(p->waiting_head, empty ? head - 1 : head);
  if (empty || head != before) p->ring_waits_since = now;
  if (now - p->ring_waits_since < waits_for_long) return nullptr;
  next_behind_others(p);
  return ring_one(p);
}

bool takes_turn_of_global_queue(P* p, bool ran_timer) noexcept {
  if (std::exchange(p->missed_turn, false)) return true;
  const bool turn = is_turn_of_global_queue(p);
  p->missed_turn = turn && ran_timer;
  return turn && !ran_timer;
}

// Does nothing if the goroutine that used the slice up is the woken one that passed.
void note_slice_used_up(P* p) noexcept {
  if (p->sched_tick.load(relaxed) != p->pass_slice) p->passed_at = 0;
}

}  // namespace weft::rt
