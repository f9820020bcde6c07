#include "runtime/alarm_clock.hpp"

#include "runtime/thread.hpp"

#include <algorithm>
#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>

namespace weft::rt {

void alarm_clock::set(nanos when) noexcept {
  errno_stays keep;
  const itimerspec at{{}, {static_cast<time_t>(when / second), static_cast<long>(when % second)}};
  ::timerfd_settime(fd_, TFD_TIMER_ABSTIME, &at, nullptr);
}

bool alarm_clock::sleep_until(nanos deadline) noexcept {
  if (woken_.load(seq_cst) == 0) {
    const nanos left = std::max<nanos>(deadline - nanotime(), 0);
    const timespec timeout{static_cast<time_t>(left / second), static_cast<long>(left % second)};
    pollfd rings{fd_, POLLIN, 0};
    const int n = ::ppoll(&rings, 1, &timeout, nullptr);
    if (n == 0) return false;
    // Closed by somebody else: whoever sleeps in the poller says so soon. Until then this one does not run flat out.
    if (n > 0 && !(rings.revents & POLLIN)) ::nanosleep(&timeout, nullptr);
  }
  set(off);                  // R1
  woken_.store(0, seq_cst);  // R2
  return true;
}

}  // namespace weft::rt
