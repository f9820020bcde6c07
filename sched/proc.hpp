// Ms and Ps: waking an M for work, passing a P from M to M. Functions that Go's proc.go has as well keep their names
// and meanings. The essay is in proc.cpp.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// --- Ms that look for work

// Has one more M look for work, if a P idles and no M is looking. `soon`: the work is what this P will most likely run
// itself (runnext, and crumbs: steal.cpp), so an M that dozes may finish its doze (doze.cpp). `to_poll`: nothing is
// ready, but some M has to sleep in the poller.
enum class help : std::uint8_t { now, soon, to_poll };
void wakep(help h = help::now) noexcept;
void start_spinning(M* m) noexcept;  // by m, which holds a P: counts it as spinning
void resetspinning(M* m) noexcept;   // by m, which found work: counts it no more, and wakes an M if there is more work
void one_spins_less() noexcept;      // the same for a count of an M that the caller owns

// True if no M sleeps in the poller although a timer is due within `horizon` or, for poller_is_wanted, somebody waits
// for a descriptor. A caller that has something else to do leaves later timers to sysmon. sysmon asks the same question
// every 10 ms at least, so it sees each of these timers before it is due.
inline constexpr nanos sysmon_is_in_time = 20 * millisecond;
bool timer_wants_poller(nanos horizon = sysmon_is_in_time) noexcept;
bool poller_is_wanted(nanos horizon = sysmon_is_in_time) noexcept;

// --- an M
void m_main(M* m) noexcept;                 // the M's life, from its thread's start to its end
void startm(P* p, bool spinning) noexcept;  // has an M run p (null: an idle P); spinning: the caller has counted that M

// --- its P
void acquirep(M* m, P* p) noexcept;
void acquire_passed_p(M* m) noexcept;  // takes the P that m was passed while it slept, or begins with, if any
P* releasep(M* m) noexcept;
void handoffp(P* p) noexcept;  // the caller owns p and cannot run it

// Returns the number of goroutines dispatched so far, by all Ps that there are.
std::uint64_t all_dispatches() noexcept;

// --- idle Ps: sched
void idle_p_put(P* p) noexcept;
P* idle_p_get() noexcept;
P* some_idle_p() noexcept;  // idle_p_get for a caller that does not hold sched.mutex

// --- sysmon
void wake_sysmon() noexcept;   // under sched.mutex: ends its deep sleep
void hurry_sysmon() noexcept;  // ends its pause, if that is long; soon, if it was hurried just now

// Called by an M that does not look for work any more, while descriptors are waited for and no M sleeps in the poller:
// what this M runs may take long. sysmon polls after `polled_every` then, unless some M does so before, if it has found
// lately that nobody had polled for that long (watch_poller_until). Otherwise it does so after its pause, which may be
// longest_pause. An M that comes back for one message does not wake another thread (burst.cpp says what that would
// cost), and in a process that is always soon done it wakes sysmon neither.
inline constexpr nanos polled_every = millisecond;
void have_sysmon_poll() noexcept;

}  // namespace weft::rt
