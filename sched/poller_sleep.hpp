// Sleeping in the poller until something is ready or the earliest timer is due (poller_sleep.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

nanos earliest_timer() noexcept;  // when the earliest timer of all Ps is due; 0: none
// The same, with most stopped timers left out (timer_heap::tidy): no M should sleep for a stopped timer, and stopped
// timers must not hide a deadlock.
nanos tidy_timers() noexcept;
bool wants_to_be_on_time(nanos when) noexcept;  // somebody wants to be, for a timer that is due then or later

// Called by m, which has no P, with what tidy_timers returned. Sleeps if no other M does. Returns true if m has a P
// again: it runs *g at once, or looks for work if *g is null. False: it has none, and there is nothing to wait for
// here.
bool sleep_in_poller(M* m, nanos until, bool was_spinning, G** g) noexcept;

}  // namespace weft::rt
