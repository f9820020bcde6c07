// The deadlock check: a program is dead if every M sleeps, and nothing that weft knows of can wake one.
//
// The check keeps silent while anything else could wake an M: an armed timer, a descriptor that is waited for, a
// goroutine in blocking() (its M does not sleep on a note), a signal channel, a function that is called at each forced
// tick, or a thread that weft did not start.

#include "runtime/sanitizer.hpp"
#include "sched/lifecycle.hpp"
#include "sched/newcomers.hpp"
#include "sched/proc.hpp"

#include <sys/stat.h>

namespace weft::rt {

namespace {

// Returns the number of threads of this process, or 0 if that cannot be told. The link count of a directory is the
// number of directories in it, and two more. Reading the directory instead could miss threads: the reading stops early
// if a thread ends meanwhile.
std::uint32_t count_threads() noexcept {
  struct stat task {};
  return ::stat("/proc/self/task", &task) == 0 && task.st_nlink > 2 ? static_cast<std::uint32_t>(task.st_nlink) - 2 : 0;
}

}  // namespace

void check_dead() noexcept {
  sched.suspect_dead = false;
  if (!sched.options.deadlock_check || !sched.running.load(relaxed)) return;
  if (sched.shutting_down.load(relaxed) || sched.world_stopping.load(relaxed)) return;
  // Signed: an M may be passed its locked goroutine before it counts as asleep (start_locked_m, stop_locked_m).
  auto asleep = static_cast<std::int32_t>(sched.idle_ms + sched.idle_locked_ms);
  if (static_cast<std::int32_t>(sched.live_ms) > asleep) return;
  if (sched.global_size.load(relaxed) != 0 || newcomers_aside() != 0) return;
  if (sched.main.load(acquire) != main_state::runs) return;  // the first M begins before main does
  if (anybody_waits_for_io() || sched.external_sources.load(relaxed) != 0 || sched.tick_hook.load(relaxed)) return;
  for (std::uint32_t i = 0; i < sched.procs.load(relaxed); ++i) {
    P* p = sched.all_ps[i].load(relaxed);
    if (p->timers.wake_when() != 0 || !p->runq.empty() || p->status.load(relaxed) != p_status::idle) return;
  }
  // Threads that are accounted for: the Ms, sysmon, run()'s caller, the threads that earlier runs left behind, and one
  // of ThreadSanitizer's.
  std::uint32_t ours = sched.live_ms + 2 + sched.left_behind.load(relaxed) + (tsan_running() ? 1 : 0);
  sched.suspect_dead = count_threads() != ours;
  if (sched.suspect_dead) {
    // Another thread may still wake a goroutine, or may end without doing so; and a thread that was just joined is
    // counted for a moment longer. So sysmon calls this function again.
    wake_sysmon();
    return;
  }
  fatal_message("all goroutines are asleep - deadlock!", dump_of::all_goroutines);
}

}  // namespace weft::rt
