// Queues of goroutines that are ready: a P's own, and the global one.
#pragma once

#include "sched/proc.hpp"
#include "sched/syscall.hpp"

namespace weft::rt {

void runqput_full(P* p, G* g) noexcept;        // for runqput, when the ring is full
void global_put(G* g) noexcept;                // under sched.mutex
void global_put_first(g_list& list) noexcept;  // under sched.mutex: before all others, in their order
void global_put_queue_of(P* p) noexcept;       // under sched.mutex, by p's owner

// Whether a goroutine that is made ready comes before the one that is next to run already.
enum class run_next : std::uint8_t { always, if_free };

enum class queued : std::uint8_t { nothing, crumbs, work };
queued look_at_queues() noexcept;  // S3
// D2: as S3, but leaves out every P's runnext, and `left_behind` goroutines in the global queue.
queued look_beyond_next(std::uint32_t left_behind = 0) noexcept;

// As global_get, which takes at most `max`, or a fair share if that is 0; takes the lock, unless the queue is empty.
G* global_one(P* p, std::uint32_t max) noexcept;
G* global_get(P* p, std::uint32_t max) noexcept;  // under sched.mutex: returns one to run, moves more into p's ring

// A2 of append-check-wake: called after p's owner, or a thread without a P (null), has made work ready.
inline void wake_for_work(const P* p, help h = help::now) noexcept {
  if (sched.idle_ps.load(seq_cst) != 0) {
    wakep(h);
  } else if (!p) {
    want_p_of_a_call();
  }
}

// Puts g at the tail of p's queue.
inline void runqput(P* p, G* g) noexcept {
  if (WEFT_UNLIKELY(!p->runq.put(g, run_queue::barrier::publish))) runqput_full(p, g);
}

// Returns the help to ask for when more than runnext is ready on p. Crumbs may wait until the doze is over.
inline help more_than_next(const P* p) noexcept {
  return p->spoils_here.load(relaxed) == spoils::work ? help::now : help::soon;
}

// Makes g the next to run on p. The goroutine that was next before goes to the tail; or, with if_free, it stays next,
// and g goes to the tail (even if a thief takes the other one just now). Returns the help to ask for.
inline help runqput_next(P* p, G* g, run_next when = run_next::always) noexcept {
  G* last = g;
  if (when == run_next::always || !p->runq.peek_next()) {
    last = p->runq.put_next(g);
    if (!last) return help::soon;
  }
  runqput(p, last);
  return more_than_next(p);
}

// Takes the goroutine at the head of p's ring, or null. When the batch from the global queue has had its turns, those
// that yielded behind it change places with the next batch.
void trade_ring_for_batch(P* p) noexcept;
[[gnu::always_inline]] inline G* ring_one(P* p) noexcept {
  if (WEFT_UNLIKELY(p->yielded_behind_batch) && !batch_waits(p)) trade_ring_for_batch(p);
  return p->runq.get_from_ring();
}

// Puts g, which p's owner took from p's queue, at its tail. No other M could see g meanwhile, so it is made ready anew.
inline void put_back(P* p, G* g) noexcept {
  runqput(p, g);                        // A1
  wake_for_work(p, more_than_next(p));  // A2
}

// Moves the goroutine that is next on p behind those in its ring.
inline void next_behind_others(P* p) noexcept {
  if (G* next = p->runq.get_next()) put_back(p, next);
}

}  // namespace weft::rt
