// Bursts. An M that slept in the poller comes back with some goroutines to run: ten timers were due, two connections
// have sent something. By append-check-wake (proc.cpp) it wakes another M for the second goroutine, or for the poller
// while it runs the first. To wake a thread and to put it to sleep again takes tens of microseconds of two processors,
// and mostly the first M is done before the other one is awake, which then finds nothing. A process that mostly idles
// spends more on help than on its work.
//
// So an M whose bursts were short lately promises to do it all itself: it stays counted as spinning while it runs
// goroutines, so that nobody else wakes one either, and sets sysmon's alarm, a matter of one system call. When it has
// nothing to run any more, it takes the promise back, and does what every M does that spun in vain. If it is not done
// in time, sysmon takes the promise over, and wakes an M.
//
//     who makes work ready        the M of the burst                       sysmon
//     A1  append it               B1  spinning: 0 to 1; promiser = it      R1  the alarm off (alarm_clock.hpp)
//     A2  spinning != 0: wakes    B2  the alarm to promise_due             R3  promiser? pauses until promise_due
//         nobody                      runs goroutines                      B4  promise_due has passed: swaps promiser
//                                 B3  gives its P up (S1); swaps promiser      for null; S2; then looks as S3 does, and
//                                     for null; S2, S3                         wakes one
//
//     One of B3 and B4 finds the promise, and S2 comes after it. If A2 reads the count of a promise, the S2 that ends
//     it comes later in the single order of seq_cst operations, and the S3 after that sees A1. So work that is made
//     ready meanwhile, by anybody, waits for `promise_lasts` at most, and so do timers and descriptors that nobody
//     sleeps for. If R3 misses B1, B2 comes after R1 and wakes sysmon in time. sysmon does not sleep deeper than a
//     pause while there is a promise: if it sleeps deeply when one is made, it is about to wake, as a P went out of
//     idle before (idle_p_get), or was not idle, or the world stands still, and whoever starts it again wakes sysmon.
//     An M that loses its P in a burst leaves its promise to sysmon; one that is left behind with it by a run(), to the
//     next. The model is tests/model/wake.pml, -DBURST.
//
// A burst counts as short if it takes no longer than it takes to get help; one that is longer ends all promises until
// enough short ones have followed. So where bursts are work for several processors, they get them as ever.

#include "sched/burst.hpp"

#include "sched/enter.hpp"

#include <algorithm>

namespace weft::rt {

namespace {

constexpr nanos short_burst = 100 * microsecond;
constexpr nanos promise_lasts = 150 * microsecond;

void count_burst(bool is_short) noexcept {
  const std::uint32_t before = sched.short_bursts.load(relaxed);
  sched.short_bursts.store(is_short ? std::min(before + 1, short_bursts_before) : 0, relaxed);
}

// True: it was m's.
bool take_back(M* m) noexcept {
  return sched.promiser.load(relaxed) == m && sched.promiser.compare_exchange_strong(m, nullptr, seq_cst, relaxed);
}

}  // namespace

void begin_burst(M* m, nanos now) noexcept {
  sched.burst_began.store(now, relaxed);
  sched.burst_of.store(m, relaxed);
}

bool promise_to_do_it_all() noexcept {
  M* m = this_m();
  if (!m || sched.burst_of.load(relaxed) != m || sched.short_bursts.load(relaxed) < short_bursts_before) return false;
  const nanos now = nanotime();
  if (now - sched.burst_began.load(relaxed) > short_burst) {
    sched.burst_of.store(nullptr, relaxed);
    count_burst(false);
    return false;
  }
  sched.promise_due.store(now + promise_lasts, relaxed);
  sched.promiser.store(m, seq_cst);                 // B1
  sched.sysmon_pause.ring_at(now + promise_lasts);  // B2
  return true;
}

bool end_burst(M* m, nanos now) noexcept {
  if (sched.burst_of.load(relaxed) == m) {
    sched.burst_of.store(nullptr, relaxed);
    count_burst(now - sched.burst_began.load(relaxed) <= short_burst);
  }
  if (!take_back(m)) return false;  // B3
  sched.sysmon_pause.ring_no_more();
  return true;
}

nanos promise_due() noexcept { return sched.promiser.load(seq_cst) ? sched.promise_due.load(relaxed) : forever; }

bool take_promise_over(nanos now) noexcept {
  M* m = sched.promiser.load(seq_cst);
  if (!m || now < sched.promise_due.load(relaxed) || !take_back(m)) return false;  // B4
  count_burst(false);
  return true;
}

}  // namespace weft::rt
