#include "sysmon/gate.hpp"

#include "runtime/fatal.hpp"
#include "sched/proc.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace weft::rt {

namespace {

// Threads that compute without a P, for each P. They share the processors with the Ms.
constexpr std::uint32_t hogs_per_p = 32;
// For how long newcomers wait, although there are as many: longer each time that one more kept its thread.
constexpr nanos longest_wait = second;

// Nearly all threads that may be are held; the last ones are for what has begun.
bool threads_run_short() noexcept {
  lock_guard hold(sched.mutex);
  std::uint32_t limit = sched.options.max_threads;
  std::uint32_t reserve = std::min(2 * sched.procs.load(relaxed) + 8, limit / 8);
  return sched.live_ms - sched.idle_ms + reserve > limit;
}

}  // namespace

void gate::look(nanos now, bool took) noexcept {
  bool full = false;
  if (closed_ || took) full = sched.hogs.load(relaxed) >= hogs_per_p * sched.procs.load(relaxed) || threads_run_short();
  if (full && took) {
    if (closed_) return;
    open_at_ = now + wait_;
    wait_ = std::min(2 * wait_, longest_wait);
    closed_ = true;
    let_newcomers(true);
    if (said_) return;
    said_ = true;
    char text[256];
    auto r = fmt::format_to_n(text, sizeof text,
                              "weft: warning: {} goroutines compute or block on threads of their own, {} of them "
                              "compute; new goroutines begin slowly until some come back.\n",
                              sched.detached_ms.load(relaxed), sched.hogs.load(relaxed));
    print_error({text, std::min(r.size, sizeof text)});
  } else if (closed_ && (!full || now >= open_at_)) {
    if (!full) wait_ = first_wait;
    closed_ = false;
    let_newcomers(false);
  }
}

}  // namespace weft::rt
