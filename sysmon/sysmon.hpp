// sysmon: a thread of its own, without a P, that sees to it that no goroutine holds up the others.
#pragma once

#include "runtime/clock.hpp"

namespace weft::rt {

void start_sysmon();  // throws std::system_error
void stop_sysmon() noexcept;

// Makes sysmon dump all goroutines to stderr and end the process with code 2. False: sysmon does not run.
// Async-signal-safe.
bool request_quit() noexcept;

// Starts the housekeeping goroutine, which does the work of the forced tick (forced_tick.cpp).
void start_housekeeper();
// Called by sysmon: wakes the housekeeping goroutine if the tick is due.
void force_tick_if_due(nanos now) noexcept;
nanos next_forced_tick() noexcept;

// Called by sysmon for WEFT_DEBUG=schedtrace (schedtrace.cpp).
void trace_scheduler(nanos since_start) noexcept;

}  // namespace weft::rt
