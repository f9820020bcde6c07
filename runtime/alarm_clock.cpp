#include "runtime/alarm_clock.hpp"

#include "runtime/thread.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>

namespace weft::rt {

bool alarm_clock::set(nanos when) noexcept {
  errno_stays keep;
  const itimerspec at{{}, {static_cast<time_t>(when / second), static_cast<long>(when % second)}};
  return ::timerfd_settime(fd_, TFD_TIMER_ABSTIME, &at, nullptr) == 0;
}

bool alarm_clock::sleep_until(nanos deadline) noexcept {
  if (woken_.load(seq_cst) == 0) {
    const nanos left = std::max<nanos>(deadline - nanotime(), 0);
    const timespec timeout{static_cast<time_t>(left / second), static_cast<long>(left % second)};
    pollfd rings{fd_, POLLIN, 0};
    const int n = ::ppoll(&rings, 1, &timeout, nullptr);
    if (n == 0) return false;
    const bool rang = n > 0 ? rings.revents == POLLIN : errno == EINTR;
    // The call is forbidden to this process, or the descriptor is somebody else's by now, which the M that sleeps in
    // the poller will report. Neither is a reason to run flat out.
    if (!rang || !set(off)) {  // R1
      deaf_.store(true, relaxed);
      ::nanosleep(&timeout, nullptr);
      return false;
    }
  } else {
    set(off);  // R1
  }
  woken_.store(0, seq_cst);  // R2
  return true;
}

}  // namespace weft::rt
