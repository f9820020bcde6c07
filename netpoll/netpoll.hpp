// The poller's contract. Behind it on Linux: one epoll instance, edge-triggered, each descriptor added once for
// both directions, an eventfd for break, a timerfd for sysmon, deadlines in nanoseconds where the kernel can
// (epoll_pwait2, 5.11).
//
// Any thread may poll; one may block at a time (the scheduler sees to that).
#pragma once

#include "runtime/clock.hpp"
#include "runtime/g.hpp"

#include <cstdint>

namespace weft::rt {

struct poll_desc;

// Lazily, once in each process: the child of a fork() has none at first, and what was registered before is registered
// anew. 0 or an errno value.
int netpoll_init() noexcept;
bool netpoll_initialized() noexcept;

// A timerfd that comes and goes with the poller, for sysmon's alarm.
int netpoll_alarm() noexcept;

// delay < 0: until something happens; 0: look; > 0: at most so many ns. Appends the goroutines that can go on;
// the caller readies them.
void netpoll(nanos delay, g_list& woken) noexcept;

// The same until a time, to the microsecond: wakes early by as much as the kernel is wont to wake late, and watches the
// rest, some tens of microseconds of a processor.
void netpoll_punctually(nanos until, g_list& woken) noexcept;

// Makes a blocked poll return, or the next one not block. Many breaks cost one wake-up.
void netpoll_break() noexcept;

// For poll_desc.cpp. 0 or an errno value.
int netpoll_add(int fd, poll_desc* pd, std::uint32_t tag) noexcept;
void netpoll_remove(int fd) noexcept;

}  // namespace weft::rt
