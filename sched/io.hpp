// Descriptors meet the scheduler: asking the poller who is ready, and waiting for that.
#pragma once

#include "netpoll/poll_desc.hpp"
#include "sched/scheduler.hpp"

namespace weft::rt {

void poll_network(nanos delay, g_list& woken) noexcept;  // foreign threads among the woken are woken at once
void poll_network_punctually(nanos until, g_list& woken) noexcept;

// Inside the runtime; m is null on a foreign thread. Returns the M on which the goroutine goes on.
[[nodiscard]] M* io_wait(M* m, poll_desc* pd, poll_mode mode, poll_status* status) noexcept;

void let_threads_wait_for_io() noexcept;    // a run() begins
void send_threads_away_from_io() noexcept;  // it ends: threads of the user's that wait are told "closing"

}  // namespace weft::rt
