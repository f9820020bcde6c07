// A poll descriptor: what the runtime knows of one open descriptor that can be waited for.
//
// For each direction there is a word ("the poll word") that says who waits:
//
//   nil     nobody waits, no notification is kept
//   ready   a notification is kept: the next wait takes it and does not sleep
//   wait    a goroutine is about to sleep
//   G*      that goroutine sleeps
//
//   from      to       by                                                       then
//   nil       wait     the goroutine, prepare_wait
//   ready     nil      the goroutine, prepare_wait                              it does not sleep
//   wait      G*       the goroutine's commit step, after it left its stack     it sleeps
//   wait      ready    the poller, or poll_try_again                            the commit fails, it goes on
//   wait      nil      a deadline or close                                      the same
//   G*        ready    the poller, or poll_try_again                            they ready the G
//   G*        nil      a deadline or close                                      they ready the G
//   nil       ready    the poller, or poll_try_again
//   ready     nil      the goroutine: poll_reset, before it tries; finish_wait, after the poller has woken it
//   wait      nil      the goroutine, in prepare_wait: it is closed, or too late, already
//
// One goroutine waits per direction; others take turns above (api/src/net).
//
// Deadlines: a timer each, made when one is first set, with a sequence number that grows whenever the deadline is set
// or the descriptor is closed; a timer that fires with an old number is stale and does nothing.
//
// `info` is one word published for lock-free readers (prepare_wait): closing, read deadline passed, write
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
  atomic<bool> special{false};  // an event has told of more than bytes to read: the end, an error, urgent data
  bool registered = false;      // by who opens and frees it; and in the child of a fork(), by poll_open_again
  lock mutex{lock_rank::poll_desc};
  direction read;
  direction write;
  poll_desc* next = nullptr;       // free list
  poll_desc* next_made = nullptr;  // of all there are; does not change

  direction& at(poll_mode m) noexcept { return m == poll_mode::read ? read : write; }
  const direction& at(poll_mode m) const noexcept { return m == poll_mode::read ? read : write; }
  std::uint32_t tag() const noexcept { return info.load(relaxed) >> tag_shift; }
};

// A descriptor for fd, registered with the poller. errno value on failure (EPERM: fd cannot be polled).
// Throws std::bad_alloc.
poll_desc* poll_open(int fd, int* error);

// Wakes both sides; every wait from now on says closing. Gs to be readied are appended to `woken`.
void poll_evict(poll_desc* pd, g_list& woken) noexcept;

// For a new poller: registers all with it that were with the last one. 0 or an errno value.
int poll_open_again() noexcept;

// At the start of a run(): the end of the last one dropped the timers of all deadlines. Throws std::bad_alloc.
void poll_set_deadlines_again(timer_heap& here);

// Until the deadline of one direction, by the clock: its timer may run a little later; forever: there is none.
// Relaxed: who sets a deadline while somebody looks cannot know whether that will see it.
inline nanos poll_time_left(const poll_desc* pd, poll_mode m) noexcept {
  const nanos deadline = pd->at(m).deadline.load(relaxed);
  if (deadline == 0) return forever;
  return deadline < 0 ? 0 : std::max<nanos>(deadline - nanotime(), 0);
}

// After evict, when no call uses it any more: forgets the descriptor. Does not close fd.
void poll_free(poll_desc* pd) noexcept;

// Whether waiting makes sense: closing or a passed deadline say no.
poll_status poll_check(const poll_desc* pd, poll_mode m) noexcept;

// Before an I/O attempt: drops a kept notification.
poll_status poll_reset(poll_desc* pd, poll_mode m) noexcept;

// True: the caller has to park with poll_commit. False: a notification was kept; try again, unless poll_check objects.
bool poll_prepare_wait(poll_desc* pd, poll_mode m) noexcept;

// On the stack that was switched to. False: something came in between and the goroutine must go on.
bool poll_commit(poll_desc* pd, poll_mode m, G* g) noexcept;

// As if the poller had told of it: who waits tries again, or who does so next. That G is to be readied, or null.
G* poll_try_again(poll_desc* pd, poll_mode m) noexcept;

// After the park: forgets the wait.
void poll_finish_wait(poll_desc* pd, poll_mode m) noexcept;

struct deadline_result {
  bool earliest = false;  // the poller sleeps too long for this deadline
  nanos when = 0;
};

// Sets the deadline of one direction: 0 none, a past time wakes a waiting goroutine (appended to `woken`).
// Timers go into `here`. Throws std::bad_alloc, and then nothing has changed.
deadline_result poll_set_deadline(timer_heap& here, poll_desc* pd, poll_mode m, nanos deadline, g_list& woken);

// The deadline timers' functions hand woken goroutines to this; the scheduler installs it.
using ready_function = void (*)(G*) noexcept;
void poll_set_ready(ready_function f) noexcept;

// An event arrived: appends the goroutine that waited, if any.
struct poll_news {
  bool readable, writable, special;
};
void poll_event(poll_desc* pd, std::uint32_t tag, poll_news news, g_list& woken) noexcept;

}  // namespace weft::rt
