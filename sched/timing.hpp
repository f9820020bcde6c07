// Timers meet the scheduler: arming them in the heap of the P at hand, sleeping, deadlines of I/O.
#pragma once

#include "netpoll/poll_desc.hpp"
#include "sched/scheduler.hpp"
#include "timers/sleep_crowd.hpp"

#include <algorithm>

namespace weft::rt {

void arm_timer(M* m, timer* t) noexcept;                    // timer_heap::add; the caller has called make_room
bool rearm_timer(M* m, timer* t, const timer_setting& to);  // true: it was pending. Throws std::bad_alloc
bool stop_timer(M* m, timer* t) noexcept;                   // del_timer
[[nodiscard]] M* sleep_until(M* m, sleep_end end);          // throws std::bad_alloc

// Sets the deadline of one direction of a descriptor. 0: none; < 0: it has passed, and a goroutine that waits is woken.
// Throws std::bad_alloc, and then nothing has changed.
void set_io_deadline(M* m, poll_desc* pd, poll_mode mode, nanos deadline);

// Runs what is due in p's heap, as long as the queue of `mine`, in which the timers make goroutines ready, has room. A
// goroutine whose timer is run is in the cache then. Behind thousands of others it would have left the cache when its
// turn comes, so these timers stay in the heap meanwhile. *now is read when it is first needed. Returns the heap's next
// time.
nanos check_timers(P* p, const P* mine, bool may_clear, nanos* now, bool* ran);

// The earlier of two times, each 0 if there is none.
inline nanos earlier(nanos a, nanos b) noexcept {
  if (a == 0) return b;
  return b == 0 ? a : std::min(a, b);
}

// There is a timer for `when`: an M that sleeps in the poller must not sleep longer; if none does, one must.
void wake_net_poller(nanos when) noexcept;

}  // namespace weft::rt
