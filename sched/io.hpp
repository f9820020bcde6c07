// Where descriptors meet the scheduler: asking the poller which goroutines can go on, and waiting for a descriptor.
#pragma once

#include "netpoll/poll_desc.hpp"
#include "sched/scheduler.hpp"

namespace weft::rt {

// netpoll() and netpoll_punctually() for the scheduler: count the poll, and append to `woken` the goroutines that the
// caller must ready. Foreign threads whose wait has ended are woken at once.
void poll_network(nanos delay, g_list& woken) noexcept;
void poll_network_punctually(nanos until, g_list& woken) noexcept;

// Called inside the runtime; m is null on a foreign thread. Returns the M on which the goroutine goes on.
[[nodiscard]] M* io_wait(M* m, poll_desc* pd, poll_mode mode, poll_status* status) noexcept;

void let_threads_wait_for_io() noexcept;    // a run() begins
void send_threads_away_from_io() noexcept;  // a run() ends: foreign threads that wait get poll_status::closing

}  // namespace weft::rt
