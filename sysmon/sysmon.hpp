// sysmon: a thread of its own, without a P, that sees to it that nobody holds up the others.
#pragma once

#include "runtime/clock.hpp"

namespace weft::rt {

void start_sysmon();  // throws std::system_error
void stop_sysmon() noexcept;

// sysmon dumps all goroutines to stderr and ends the process with code 2. False: it does not run. Async-signal-safe.
bool request_quit() noexcept;

// The forced tick (forced_tick.cpp): starts the housekeeping goroutine.
void start_housekeeper();
// By sysmon: wakes it if its time has come; and when that is.
void force_tick_if_due(nanos now) noexcept;
nanos next_forced_tick() noexcept;

// By sysmon, if asked for (schedtrace.cpp).
void trace_scheduler(nanos since_start) noexcept;

}  // namespace weft::rt
