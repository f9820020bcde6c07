// A note (note.hpp) that rings at a time as well. Other threads may set that time again and again without waking the
// sleeper, because it is the time of a kernel timer (timerfd). One thread sleeps. Any thread may wake it, or set the
// time; only the time that was set last counts.
//
//     a thread that wakes, or sets the time        the sleeper
//     W1  say why (a flag, a time)                 R1  the timer off
//     W2  woken = 1; the timer to "now"            R2  woken = 0
//     T2  the timer to a time, or off;             R3  look at what was said
//         woken? the timer to "now"
//
//     If R3 misses W1, R3 comes before W1 in the single order of seq_cst operations. Then W2 comes after R1 and R2, and
//     the next sleep ends at once. Likewise T2 comes after R1, and its time stands. If R1 takes back the time of a T2,
//     that T2 came first, and R3 sees what its time was for. If T2 takes back the "now" of a W2, there are two cases:
//     T2 reads that W2's `woken`; or R2 has cleared it, after W2, and R3 sees W1. A ring that nobody waits for any more
//     only ends the next sleep early: nothing is done twice because of it.
#pragma once

#include "runtime/atomic.hpp"
#include "runtime/clock.hpp"

#include <cstdint>

namespace weft::rt {

class alarm_clock {
 public:
  // Must be called before other threads know the clock. `timer_fd`, a timerfd on CLOCK_MONOTONIC, stays the caller's.
  void use(int timer_fd) noexcept {
    fd_ = timer_fd;
    deaf_.store(false, relaxed);
  }

  // Wakes the sleeper. Any thread may call it, also in a signal handler. Keeps errno, as the next two functions do.
  void wakeup() noexcept {
    woken_.store(1, seq_cst);
    set(at_once);
  }

  // False: the clock will not ring, because the kernel does not allow us to set the timer, or to wait for it.
  bool ring_at(nanos when) noexcept { return set_unless_woken(when); }
  void ring_no_more() noexcept { set_unless_woken(off); }

  // Called by the sleeper. All wake-ups so far count as one, which this call takes. False: `deadline` passed first.
  bool sleep_until(nanos deadline) noexcept;

 private:
  static constexpr nanos at_once = 1, off = 0;

  bool set(nanos when) noexcept;
  bool set_unless_woken(nanos when) noexcept {
    const bool is_set = set(when);
    if (woken_.load(seq_cst) != 0) set(at_once);
    return is_set && !deaf_.load(relaxed);
  }

  atomic<std::uint32_t> woken_{0};
  atomic<bool> deaf_{false};  // the sleeper cannot wait for the timer
  int fd_ = -1;
};

}  // namespace weft::rt
