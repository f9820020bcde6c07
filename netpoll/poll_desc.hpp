// A poll descriptor: what the runtime knows about an open descriptor that goroutines can wait for.
//
// For each direction a word ("the poll word") says who waits:
//
//   nil     nobody waits, and no notification is kept
//   ready   a notification is kept: the next wait takes it and does not sleep
//   wait    a goroutine is about to sleep
//   G*      that goroutine sleeps
//
//   from      to       by                                                       then
//   nil       wait     the goroutine, poll_prepare_wait
//   ready     nil      the goroutine, poll_prepare_wait                         it does not sleep
//   wait      G*       the goroutine's commit step, after it left its stack     it sleeps
//   wait      ready    the poller, or poll_try_again                            the commit fails, it goes on
//   wait      nil      a deadline or close                                      the same
//   G*        ready    the poller, or poll_try_again                            they ready the G
//   G*        nil      a deadline or close                                      they ready the G
//   nil       ready    the poller, or poll_try_again
//   ready     nil      the goroutine: poll_reset, before it tries; poll_finish_wait, after the poller has woken it
//   wait      nil      the goroutine, in poll_prepare_wait: it is closed, or too late, already
//
// One goroutine waits per direction; others take turns above (api/src/net).
//
// Deadlines: a timer each, made when one is first set, with a sequence number that grows whenever the deadline is set
// or the descriptor is closed; a timer that fires with an old number is stale and does nothing.
//
// `info` is one word published for lock-free readers (poll_prepare_wait): closing, read deadline passed, write
// deadline passed, and the event tag. It is written under the descriptor's lock.
//
// Memory: descriptors and their timers are never freed and never become anything else, so a stale event may look at
// one. The tag is also in the epoll data: an event of an earlier use of the descriptor is recognised and dropped.
#pragma once

#include "runtime/g.hpp"
#include "runtime/lock.hpp"
#include "timers/timer_heap.hpp"

#include <algorithm>
#include <cstdint>

namespace weft::rt {

enum class poll_mode : std::uint8_t { read, write };

enum class poll_status : std::uint8_t { ok, closing, timed_out };

struct poll_desc {
  static constexpr std::uintptr_t nil = 0, ready = 1, wait = 2;

  struct deadline_timer : timer {
    explicit deadline_timer(poll_desc* pd) noexcept : of(pd) {}
    poll_desc* const of;
  };

  struct direction {
    atomic<std::uintptr_t> word{nil};
    atomic<nanos> deadline{0};  // 0: none, < 0: passed; changed under the mutex
    std::uint64_t seq = 0;
    deadline_timer* passing = nullptr;  // under the mutex; once made it stays
  };

  // info bits
  static constexpr std::uint32_t closing = 1, read_passed = 2, write_passed = 4, tag_shift = 8;

  atomic<std::uint32_t> info{0};
  int fd = -1;
  atomic<bool> special{false};  // an event told of more than bytes to read: the end, an error, or urgent data
  bool registered = false;      // written by poll_open, poll_free and, in the child of a fork(), poll_open_again
  lock mutex{lock_rank::poll_desc};
  direction read;
  direction write;
  poll_desc* next = nullptr;       // free list
  poll_desc* next_made = nullptr;  // in the list of all descriptors; never changes

  direction& at(poll_mode m) noexcept { return m == poll_mode::read ? read : write; }
  const direction& at(poll_mode m) const noexcept { return m == poll_mode::read ? read : write; }
  std::uint32_t tag() const noexcept { return info.load(relaxed) >> tag_shift; }
};

// Makes a poll descriptor for fd and registers it with the poller. On failure returns null and sets *error to an errno
// value (EPERM: fd cannot be polled). Throws std::bad_alloc.
poll_desc* poll_open(int fd, int* error);

// Closes: wakes the waiters of both directions, and every later wait returns `closing`. Appends the goroutines to be
// readied to `woken`.
void poll_evict(poll_desc* pd, g_list& woken) noexcept;

// Registers with a new poller all descriptors that were registered with the last one. Returns 0 or an errno value.
int poll_open_again() noexcept;

// Arms the timers of all deadlines anew. Called at the start of a run(): the end of the last one dropped these timers.
// Throws std::bad_alloc.
void poll_set_deadlines_again(timer_heap& here);

// Returns the time left until the deadline of one direction; `forever`: there is no deadline. It asks the clock, since
// the deadline's timer may run a little later. relaxed: a thread that sets a deadline meanwhile cannot know whether
// this call will see it.
inline nanos poll_time_left(const poll_desc* pd, poll_mode m) noexcept {
  const nanos deadline = pd->at(m).deadline.load(relaxed);
  if (deadline == 0) return forever;
  return deadline < 0 ? 0 : std::max<nanos>(deadline - nanotime(), 0);
}

// Forgets the descriptor. Called after poll_evict, when no call uses the descriptor any more. Does not close fd.
void poll_free(poll_desc* pd) noexcept;

// Returns ok if waiting makes sense: the descriptor is not closed, and the deadline has not passed.
poll_status poll_check(const poll_desc* pd, poll_mode m) noexcept;

// Called before an I/O attempt: drops a kept notification. Returns what poll_check returns; unless that is ok, it drops
// nothing.
poll_status poll_reset(poll_desc* pd, poll_mode m) noexcept;

// Begins a wait. True: the caller must park with poll_commit. False: a notification was kept, so the caller must try
// again, unless poll_check objects.
bool poll_prepare_wait(poll_desc* pd, poll_mode m) noexcept;

// The commit step, which runs on the stack that was switched to. False: something came in between, and the goroutine
// must go on.
bool poll_commit(poll_desc* pd, poll_mode m, G* g) noexcept;

// Acts as if the poller had reported an event: the goroutine that waits tries again, or else the next one that is about
// to wait. Returns the goroutine to be readied, or null.
G* poll_try_again(poll_desc* pd, poll_mode m) noexcept;

// Called after the park: forgets the wait.
void poll_finish_wait(poll_desc* pd, poll_mode m) noexcept;

struct deadline_result {
  bool earliest = false;  // the poller sleeps too long for this deadline
  nanos when = 0;
};

// Sets the deadline of one direction. 0: none. Negative: it has passed, which wakes a waiting goroutine (appended to
// `woken`). The timer goes into `here`. If it throws std::bad_alloc, nothing has changed.
deadline_result poll_set_deadline(timer_heap& here, poll_desc* pd, poll_mode m, nanos deadline, g_list& woken);

// Installs the function to which the deadline timers hand the goroutines that they wake. Called by the scheduler.
using ready_function = void (*)(G*) noexcept;
void poll_set_ready(ready_function f) noexcept;

// Handles an event: appends the goroutine that waited for it, if any, to `woken`.
struct poll_news {
  bool readable, writable, special;
};
void poll_event(poll_desc* pd, std::uint32_t tag, poll_news news, g_list& woken) noexcept;

}  // namespace weft::rt
