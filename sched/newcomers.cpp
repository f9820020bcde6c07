// Goroutines that have not begun wait while too many threads run without a P (sysmon's gate says when). What has begun
// goes on as ever: a program whose new goroutines all turn out to compute without end still keeps its tickers and its
// connections.

#include "sched/proc.hpp"

namespace weft::rt {

bool put_newcomer_aside(G* g) noexcept {
  if (!sched.newcomers_wait.load(relaxed) || g->context || g->system) return false;
  lock_guard hold(sched.mutex);
  sched.newcomers.push_back(g);
  sched.newcomers_size.store(static_cast<std::uint32_t>(sched.newcomers.size()), seq_cst);
  return true;
}

G* take_newcomer() noexcept {
  if (sched.newcomers_size.load(relaxed) == 0 || sched.newcomers_wait.load(relaxed)) return nullptr;
  lock_guard hold(sched.mutex);
  if (sched.newcomers.size() == 0) return nullptr;
  G* g = sched.newcomers.pop_front();
  sched.newcomers_size.store(static_cast<std::uint32_t>(sched.newcomers.size()), relaxed);
  return g;
}

void let_newcomers(bool wait) noexcept {
  sched.newcomers_wait.store(wait, seq_cst);
  if (wait) {
    // Each dispatch goes by the scheduler's loop from here on (plan_next_look).
    std::uint32_t n = sched.procs.load(acquire);
    for (std::uint32_t i = 0; i < n; ++i) sched.all_ps[i].load(acquire)->next_look.store(1, relaxed);
  } else if (sched.newcomers_size.load(seq_cst) != 0 && sched.idle_ps.load(seq_cst) != 0) {
    wakep();
  }
}

}  // namespace weft::rt
