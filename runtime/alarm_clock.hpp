// A note (note.hpp) that others may also set to a time, again and again, without waking its sleeper: a timer of the
// kernel's (timerfd). One thread sleeps; anybody wakes it, or sets the time: there is one, the last.
//
//     who wakes, or sets the time                  the sleeper
//     W1  say why (a flag, a time)                 R1  the timer off
//     W2  woken = 1; the timer to "now"            R2  woken = 0
//     T2  the timer to a time, or off;             R3  look at what was said
//         woken? the timer to "now"
//
//     If R3 misses W1, it comes first in the single order of seq_cst operations: W2 comes after R1 and R2, and the next
//     sleep ends at once. So does T2's time, which R1 may else have taken back: then R3 sees what it is for. If T2
//     takes back the "now" of a W2, it reads its `woken`, or R2 has been there, after W2, and R3 sees W1. A ring that
//     nobody waits for any more costs the next sleep: nothing is done twice by that.
#pragma once

#include "runtime/atomic.hpp"
#include "runtime/clock.hpp"

#include <cstdint>

namespace weft::rt {

class alarm_clock {
 public:
  // Before others know it. The descriptor, a timerfd by CLOCK_MONOTONIC, stays the caller's.
  void use(int timer_fd) noexcept {
    fd_ = timer_fd;
    deaf_.store(false, relaxed);
  }

  // By anybody, a signal's handler too. Keeps errno, as do the next two.
  void wakeup() noexcept {
    woken_.store(1, seq_cst);
    set(at_once);
  }

  // False: the kernel does not let us, and it will not ring.
  bool ring_at(nanos when) noexcept { return set_unless_woken(when); }
  void ring_no_more() noexcept { set_unless_woken(off); }

  // By its sleeper: all that woke it before is one, and taken. False: `deadline` passed first.
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
  atomic<bool> deaf_{false};  // its sleeper cannot hear the timer
  int fd_ = -1;
};

}  // namespace weft::rt
