// Ms and Ps: waking an M for work, passing a P from M to M. What Go's proc.go has, too, has its name and meaning. The
// essay is in proc.cpp.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// --- who looks for work

// One more M shall look for work, if a P idles and nobody looks. `soon`: the work is what this P will most likely do
// itself (runnext, and crumbs: steal.cpp), so an M that dozes may finish its doze (find.cpp). `to_poll`: nothing is
// ready, but somebody has to sleep in the poller.
enum class help : std::uint8_t { now, soon, to_poll };
void wakep(help h = help::now) noexcept;
void start_spinning(M* m) noexcept;  // by m, with a P: it counts as spinning
void resetspinning(M* m) noexcept;   // by m, which has found work: it counts no more, and wakes one if there is more
void one_spins_less() noexcept;      // the caller's count of an M: the same for that

// Nobody sleeps in the poller, and a timer is due within `horizon`; or somebody waits for a descriptor. Who has
// something else to do leaves later timers to sysmon: it asks, too, every 10 ms at least, and will find them within
// this by then.
inline constexpr nanos sysmon_is_in_time = 20 * millisecond;
bool timer_wants_poller(nanos horizon = sysmon_is_in_time) noexcept;
bool poller_is_wanted(nanos horizon = sysmon_is_in_time) noexcept;

// --- an M
void m_main(M* m) noexcept;                 // its life
void startm(P* p, bool spinning) noexcept;  // an M runs p (null: an idle one); spinning: the caller has counted it

// --- its P
void acquirep(M* m, P* p) noexcept;
void acquire_passed_p(M* m) noexcept;  // the one it was passed while it slept, or begins with, if any
P* releasep(M* m) noexcept;
void handoffp(P* p) noexcept;  // the caller owns p and cannot run it

// --- idle Ps: sched
void idle_p_put(P* p) noexcept;
P* idle_p_get() noexcept;

// --- sysmon
void wake_sysmon() noexcept;   // under sched.mutex: ends its deep sleep
void hurry_sysmon() noexcept;  // ends its pause, if that is long; soon, if it was hurried just now

}  // namespace weft::rt
