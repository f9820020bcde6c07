// A thread was wanted and could not be had. That is no error: the goroutines wait for the threads there are, and go on
// when one of those comes by. But whoever looks for the reason why all stands still shall find it.

#include "sched/threads.hpp"

#include <algorithm>
#include <unistd.h>

namespace weft::rt {

void warn_of_no_thread() noexcept {
  static constinit atomic<bool> said{false};  // relaxed: who comes second has nothing to read
  if (said.load(relaxed)) return;
  std::uint32_t threads;
  {
    lock_guard hold(sched.mutex);
    if (sched.shutting_down.load(relaxed)) return;
    threads = sched.live_ms;
  }
  if (said.exchange(true, relaxed)) return;
  bool at_the_limit = threads >= sched.options.max_threads;
  char text[384];
  auto r =
      fmt::format_to_n(text, sizeof text,
                       "weft: warning: {} {} threads are held by goroutines that compute or block; the others wait "
                       "until one comes back. {}\n",
                       at_the_limit ? "all" : "no thread could be started, and all", threads,
                       at_the_limit ? "More: weft::options::max_threads."
                                    : "Limits are `ulimit -u`, the cgroup's pids.max, and memory.");
  write_without_waiting(STDERR_FILENO, {text, std::min(r.size, sizeof text)});
}

}  // namespace weft::rt
