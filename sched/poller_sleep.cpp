// The last resort: sleeps in the poller until something is ready or the earliest timer is due, if no other M does.
//
//     a thread that arms a timer (timing.cpp)       the sleeper, without a P
//     T1  put it into a heap, or lower the hint     P1  last_poll = 0
//     T2  last_poll == 0: break the sleep off, if   P2  read the hints of all heaps again
//         poll_until is later than the timer        P3  poll_until = the earliest; sleep that long
//         last_poll != 0: wake an M, if a P idles
//
//     If T2 reads last_poll before P1, P2 sees T1: the hints are never too late (timer_heap.hpp). Otherwise T2 reads
//     poll_until. It gets either what P3 stored, and no M sleeps longer than that; or the 0 from before P3, which
//     stands for "for ever", and breaks off a sleep in vain. The M that T2 wakes may find the poller taken. It breaks
//     off a sleep that is too long for its timer: it cannot know that P2 has seen that timer.
//     The model is tests/model/poller.pml.

#include "sched/poller_sleep.hpp"

#include "netpoll/netpoll.hpp"
#include "sched/burst.hpp"
#include "sched/io.hpp"
#include "sched/park.hpp"
#include "sched/proc.hpp"
#include "sched/threads.hpp"
#include "sched/timing.hpp"

#include <algorithm>

namespace weft::rt {

nanos earliest_timer() noexcept {
  nanos least = 0;
  std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!sched.timer_mask.has(i)) continue;
    least = earlier(least, sched.all_ps[i].load(acquire)->timers.wake_when());
  }
  return least;
}

nanos tidy_timers() noexcept {
  std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) sched.all_ps[i].load(acquire)->timers.tidy();
  return earliest_timer();
}

bool wants_to_be_on_time(nanos when) noexcept {
  std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (sched.all_ps[i].load(acquire)->timers.punctual_until() >= when) return true;
  }
  return false;
}

namespace {

// Blocks in the poller until something is ready, or until the time `until`; 0: no limit.
void poll_network_until(nanos until, g_list& woken) noexcept {
  // seq_cst: if the break of stop_runtime made no event, because an earlier one was not drained yet, this comes later
  // than that drain (handle_events), and reads true.
  if (sched.shutting_down.load(seq_cst)) {
    poll_network(0, woken);
  } else if (until == 0) {
    poll_network(-1, woken);
  } else if (wants_to_be_on_time(until)) {
    poll_network_punctually(until, woken);
  } else {
    poll_network(std::max<nanos>(until - nanotime(), 0), woken);
  }
}

}  // namespace

bool sleep_in_poller(M* m, nanos until, bool was_spinning, G** g) noexcept {
  if (!anybody_waits_for_io() && until == 0) {
    // An M that still sleeps in the poller does so for a timer that was stopped since, or for a descriptor whose wait a
    // deadline or a close has ended. It must go to sleep as we do, since the deadlock check counts the Ms that have. If
    // it goes to the poller only now, it sees that nobody waits (below).
    if (sched.last_poll.load(seq_cst) == 0) netpoll_break();
    return false;
  }
  if (sched.last_poll.exchange(0, seq_cst) == 0) {  // P1
    // Another M sleeps in the poller, and must not sleep longer than our timers allow.
    if (until != 0) {
      nanos theirs = sched.poll_until.load(seq_cst);
      if (theirs == 0 || theirs > until) netpoll_break();
    }
    return false;
  }
  nanos again = earliest_timer();  // P2
  until = earlier(until, again);
  sched.poll_until.store(until, seq_cst);  // P3
  g_list woken;
  if (WEFT_UNLIKELY(m->pins != 0)) m->in_poller.store(true, seq_cst);                // L1 (pin.cpp)
  if (WEFT_UNLIKELY(m->pins != 0) && m->requests.load(seq_cst) & request::pinned) {  // L2
    poll_network(0, woken);
  } else if (again == 0 && !anybody_waits_for_io()) {
    // Our timer was stopped since we looked, or the wait for the descriptor was ended, and the M that did so may have
    // gone to sleep before P1. Polls without blocking and looks again, to go to sleep as that M did.
    poll_network(0, woken);
  } else if (WEFT_UNLIKELY(sched.out_of_threads.load(seq_cst))) {  // after P1 (start_new_m)
    poll_network(0, woken);
  } else {
    poll_network_until(until, woken);
  }
  if (WEFT_UNLIKELY(m->pins != 0)) m->in_poller.store(false, relaxed);  // one break too many does no harm
  nanos now = nanotime();
  // seq_cst: a thread at T2 that still reads the 0 of P1 wakes nobody. T1 comes earlier then than this, and than the
  // question that this M asks before it runs anything (timer_wants_poller; schedule, proc.cpp).
  sched.poll_until.store(0, seq_cst);
  sched.last_poll.store(now, seq_cst);
  sched.coarse_now.store(now, relaxed);

  if (!sched.shutting_down.load(acquire)) {
    lock_guard hold(sched.mutex);
    if (!take_p_for_want_of_thread(m) && !sched.world_stopping.load(relaxed)) {
      if (P* p = idle_p_get()) acquirep(m, p);
    }
  }
  P* p = m->p.load(relaxed);
  if (!p) {
    ready_all(woken);
    return false;
  }
  begin_burst(m, now);
  if ((*g = ready_all_but_first(p, woken)) != nullptr) return true;
  if (!m->spinning.load(relaxed) && (was_spinning || (until != 0 && now >= until))) {
    start_spinning(m);  // the timer may be in any P's heap
  }
  return true;
}

}  // namespace weft::rt
