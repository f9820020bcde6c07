// Bursts: what the poller woke is mostly done before help would be there (burst.cpp).
#pragma once

#include "sched/scheduler.hpp"

namespace weft::rt {

// m, which slept in the poller until `now`, has a P again.
void begin_burst(M* m, nanos now) noexcept;

// In wakep, which has counted one more that spins. True: nobody needs to be woken, as the caller's M does it all
// itself, or sysmon wakes one; that count stays.
bool promise_to_do_it_all() noexcept;

// m has given its P up, or passes it on. True: it had promised, and the count is the caller's again.
bool end_burst(M* m) noexcept;

// For sysmon. When it has to look after a promise, or `forever`.
nanos promise_due() noexcept;
// True: one is due and was taken over, and the count is the caller's.
bool take_promise_over(nanos now) noexcept;

}  // namespace weft::rt
