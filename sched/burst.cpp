// Bursts. An M that slept in the poller comes back with some goroutines to run: ten timers were due, or two connections
// have sent something. By append-check-wake (proc.cpp) it wakes another M for the second goroutine, or for the poller
// while it runs the first. Waking a thread and putting it to sleep again takes tens of microseconds on two processors.
// Mostly the first M is done before the other one is awake, and the other one finds nothing. A process that mostly
// idles spends more on help than on its work.
//
// So an M that is the only one to hold a P, and whose last bursts were short, promises to do all the work itself. It
// stays counted as spinning while it runs goroutines, so that no other thread wakes an M either, and it sets sysmon's
// alarm, which takes one system call. When the M has nothing to run any more, it takes the promise back, and does what
// every M does that spun in vain. If it is not done in time, sysmon takes the promise over, and wakes an M.
//
//     makes work ready            the M of the burst, with a P             sysmon
//     A1  append it               B1  spinning: 0 to 1; promiser = it      R1  the alarm off (alarm_clock.hpp)
//     A2  spinning != 0: wakes    B2  the alarm to promise_due             R3  promiser? pauses until promise_due
//         no M                        runs goroutines                      B4  promise_due has passed: swaps promiser
//                                 B3  gives its P up; swaps promiser           for null; S2; then looks as S3 does, and
//                                     for null; S2, S3                         wakes an M
//
//     Either B3 or B4 finds the promise, and S2 comes after it. If A2 reads the count of a promise, the S2 that ends
//     the promise comes later in the single order of seq_cst operations, and the S3 after that sees A1. So work that
//     any thread makes ready meanwhile waits for `promise_lasts` at most, and for sysmon and an M to wake. So do timers
//     and descriptors that no M sleeps for. If R3 misses B1, B2 comes after R1 and wakes sysmon in time.
//     sysmon sleeps no deeper than a pause while there is a promise. When a promise is made, sysmon may be in a deep
//     sleep in two cases only: the M took its P just now, which wakes sysmon (idle_p_get), or the world is stopped, and
//     then the thread that starts it again wakes sysmon. Hence a promise requires a P.
//     An M whose P is taken leaves its promise to sysmon. An M that a run() leaves behind leaves its promise to the
//     next run(). The model is tests/model/wake.pml, -DBURST.
//
// What a promise must not cost:
//   - Parallel work. A burst counts as short if it is done in the time that help would take. A longer burst, or one
//     whose promise sysmon took over, ends all promises until enough short ones have followed. Each promise that is
//     taken over doubles how many are enough; four times as many short ones halve it. So where one burst in so many is
//     work for several processors, it gets them as ever. Where several Ps are held already, no M promises anything:
//     others may depend on help for what they make ready.
//   - Punctuality. No M promises anything if somebody wants to be on time for a timer meanwhile: for such a timer an M
//     sleeps in the poller (netpoll/punctual.hpp).

#include "sched/burst.hpp"

#include "sched/enter.hpp"
#include "sched/poller_sleep.hpp"

#include <algorithm>

namespace weft::rt {

namespace {

constexpr nanos short_burst = 100 * microsecond;
constexpr nanos promise_lasts = 150 * microsecond;
constexpr std::uint32_t most_short_bursts_before = 1024;
constexpr std::uint32_t many_times = 4;

void count_burst(bool is_short) noexcept {
  if (!is_short) return sched.short_bursts.store(0, relaxed);
  std::uint32_t n = sched.short_bursts.load(relaxed) + 1, enough = sched.short_bursts_before.load(relaxed);
  if (n >= many_times * enough) {
    n = enough = std::max(enough / 2, short_bursts_at_first);
    sched.short_bursts_before.store(enough, relaxed);
  }
  sched.short_bursts.store(n, relaxed);
}

// True if somebody would be late for a timer because no M sleeps in the poller for the next `d`.
bool timer_comes_within(nanos d, nanos now) noexcept {
  const nanos next = earliest_timer();
  return next > now && next < now + d && wants_to_be_on_time(next);
}

// Takes m's promise back. True: there was one, and it was still m's.
bool take_back(M* m) noexcept {
  return sched.promiser.load(relaxed) == m && sched.promiser.compare_exchange_strong(m, nullptr, seq_cst, relaxed);
}

}  // namespace

void begin_burst(M* m, nanos now) noexcept {
  P* p = m->p.load(relaxed);
  sched.burst_p.store(p, relaxed);
  sched.burst_dispatches.store(dispatches(p), relaxed);
  sched.burst_began.store(now, relaxed);
  sched.burst_of.store(m, relaxed);
}

bool promise_to_do_it_all() noexcept {
  M* m = this_m();
  if (!m || sched.burst_of.load(relaxed) != m || !m->p.load(relaxed)) return false;
  if (sched.short_bursts.load(relaxed) < sched.short_bursts_before.load(relaxed)) return false;
  if (sched.idle_ps.load(relaxed) + 1 != sched.procs.load(relaxed)) return false;
  const nanos now = nanotime();
  if (now - sched.burst_began.load(relaxed) > short_burst || timer_comes_within(promise_lasts, now)) return false;
  sched.promise_due.store(now + promise_lasts, relaxed);
  sched.promiser.store(m, seq_cst);                                  // B1
  if (sched.sysmon_pause.ring_at(now + promise_lasts)) return true;  // B2
  return !take_back(m);
}

bool end_burst(M* m) noexcept {
  if (sched.burst_of.load(relaxed) == m) {
    sched.burst_of.store(nullptr, relaxed);
    const bool is_short = nanotime() - sched.burst_began.load(relaxed) <= short_burst;
    const bool is_empty = dispatches(sched.burst_p.load(relaxed)) == sched.burst_dispatches.load(relaxed);
    if (!is_short || !is_empty) count_burst(is_short);
  }
  if (!take_back(m)) return false;  // B3
  sched.sysmon_pause.ring_no_more();
  sched.sysmon_polls.store(0, relaxed);  // if that alarm was set before the promise's, it is off as well
  return true;
}

nanos promise_due() noexcept { return sched.promiser.load(seq_cst) ? sched.promise_due.load(relaxed) : forever; }

bool take_promise_over(nanos now) noexcept {
  M* m = sched.promiser.load(seq_cst);
  if (!m || now < sched.promise_due.load(relaxed) || !take_back(m)) return false;  // B4
  count_burst(false);
  const std::uint32_t before = sched.short_bursts_before.load(relaxed);
  sched.short_bursts_before.store(std::min(2 * before, most_short_bursts_before), relaxed);
  return true;
}

}  // namespace weft::rt
