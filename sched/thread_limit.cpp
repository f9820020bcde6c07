// The warning that all threads are held, and another one was wanted and could not be had. This is not an error: the
// goroutines wait, and go on when a thread comes by. But a user who looks for the reason why the program stands still
// must be able to find it. A thread that was merely wanted, while others run what there is, is no reason to warn.

#include "sched/proc.hpp"
#include "sched/threads.hpp"

#include <algorithm>
#include <unistd.h>

namespace weft::rt {

namespace {

constexpr nanos held_for_long = 100 * millisecond;

// Called under sched.mutex.
bool nobody_comes_by() noexcept {
  if (!sched.out_of_threads.load(relaxed) || sched.shutting_down.load(relaxed)) return false;
  if (sched.m_wanted.load(relaxed)) return false;  // nobody has been refused one yet
  const nanos now = nanotime();
  if (now - sched.nobody_came_by.since < held_for_long) return false;
  const std::uint64_t before = sched.nobody_came_by.dispatches;
  sched.nobody_came_by = {now, all_dispatches()};
  return sched.nobody_came_by.dispatches == before;
}

}  // namespace

void warn_if_all_are_held() noexcept {
  static constinit atomic<bool> said{false};  // relaxed: it publishes nothing else
  if (said.load(relaxed)) return;
  std::uint32_t threads;
  {
    lock_guard hold(sched.mutex);
    if (!nobody_comes_by()) return;
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
