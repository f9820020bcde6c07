// Bursts: the goroutines that the poller woke are mostly done before help would be there (burst.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// Called when m, which slept in the poller until `now`, has a P again.
void begin_burst(M* m, nanos now) noexcept;

// Called by wakep, which has counted one more M as spinning. True: no M needs to be woken, as the caller's M does all
// the work itself, or sysmon wakes an M; the count stays.
bool promise_to_do_it_all() noexcept;

// Called when m has given its P up, or passes it on. True: m had made a promise, and the count is the caller's again.
bool end_burst(M* m) noexcept;

// For sysmon: when it has to look after a promise, or `forever`.
nanos promise_due() noexcept;
// For sysmon. True: a promise was due and has been taken over, and the count is the caller's.
bool take_promise_over(nanos now) noexcept;

}  // namespace weft::rt
