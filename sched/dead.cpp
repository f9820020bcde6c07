// The deadlock check: every M sleeps, and nothing that weft knows of can wake one.
//
// It keeps silent while anything outside could: an armed timer, a descriptor that is waited for, a goroutine in
// blocking() (its M does not sleep on a note), a signal channel, or a thread that weft did not start.

#include "runtime/sanitizer.hpp"
#include "sched/lifecycle.hpp"
#include "sched/newcomers.hpp"
#include "sched/proc.hpp"

#include <sys/stat.h>

namespace weft::rt {

namespace {

// Threads of this process, or 0 if that cannot be told. A directory has a link for each directory in it, and two more.
// Reading the directory would miss threads: it ends early where one ends meanwhile.
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
  if (sched.main.load(acquire) != main_state::runs) return;  // the first M comes before main
  if (anybody_waits_for_io() || sched.external_sources.load(relaxed) != 0) return;
  for (std::uint32_t i = 0; i < sched.procs.load(relaxed); ++i) {
    P* p = sched.all_ps[i].load(relaxed);
    if (p->timers.wake_when() != 0 || !p->runq.empty() || p->status.load(relaxed) != p_status::idle) return;
  }
  // Ours: the Ms, sysmon, run()'s caller, threads an earlier run left behind; ThreadSanitizer has one of its own.
  std::uint32_t ours = sched.live_ms + 2 + sched.left_behind.load(relaxed) + (tsan_running() ? 1 : 0);
  sched.suspect_dead = count_threads() != ours;
  if (sched.suspect_dead) {
    // Such a thread may wake somebody, or end without; one that was just joined is counted for a moment longer. sysmon
    // asks again.
    wake_sysmon();
    return;
  }
  fatal_message("all goroutines are asleep - deadlock!", dump_of::all_goroutines);
}

}  // namespace weft::rt
