// The poller's contract. On Linux the poller is one epoll instance, edge-triggered. Each descriptor is added once, for
// both directions. An eventfd, which is in it, is for netpoll_break. A timerfd, which is not, is made with it for
// sysmon. Time limits are in nanoseconds where the kernel has epoll_pwait2 (5.11).
//
// Any thread may poll. Only one may block in the poller at a time; the scheduler sees to that.
#pragma once

#include "runtime/clock.hpp"
#include "runtime/g.hpp"

#include <cstdint>

namespace weft::rt {

struct poll_desc;

// Makes the poller. It is made lazily, once in each process: the child of a fork() has none at first, and its first
// call registers anew what was registered before the fork. Returns 0 or an errno value.
int netpoll_init() noexcept;
bool netpoll_initialized() noexcept;

// Returns the timerfd for sysmon's alarm. It is made and closed together with the poller.
int netpoll_alarm() noexcept;

// Polls. delay < 0: blocks until something happens; 0: does not block; > 0: blocks for at most that many ns. Appends
// the goroutines that can go on to `woken`; the caller must ready them.
void netpoll(nanos delay, g_list& woken) noexcept;

// Polls until a time, to the microsecond. The kernel usually wakes a thread late; this sleeps that much less, and then
// polls without blocking until the time has come. That takes some tens of microseconds of a processor.
void netpoll_punctually(nanos until, g_list& woken) noexcept;

// Makes a blocked poll return, or the next blocking one return at once. Many breaks cost one wake-up.
void netpoll_break() noexcept;

// For poll_desc.cpp. netpoll_add returns 0 or an errno value.
int netpoll_add(int fd, poll_desc* pd, std::uint32_t tag) noexcept;
void netpoll_remove(int fd) noexcept;

}  // namespace weft::rt
