// The forced tick: every force_tick_period a system goroutine does the housekeeping that nobody else gets to.
//
// sysmon only decides that it is time, and makes that goroutine ready. It does its work with a P, like any goroutine.

#include "runtime/g_pool.hpp"
#include "runtime/stack_cooling.hpp"
#include "sched/blocks.hpp"
#include "sched/park.hpp"
#include "sched/spawn.hpp"
#include "sysmon/sysmon.hpp"

#include <utility>

namespace weft::rt {

namespace {

void publish_housekeeper(G* g, void*) noexcept {
  lock_guard hold(sched.mutex);
  sched.housekeeper = g;
}

void wait_for_tick() noexcept {
  runtime_scope scope;
  scope.resumed_on(park(scope.m(), publish_housekeeper, nullptr, wait_reason::forced_tick_idle));
}

// Takes out stopped timers that no M has come across. Timers that are due are left to the Ms, which run them only if
// there is room in a queue.
void clear_stopped_timers() noexcept {
  runtime_scope scope;
  for (std::uint32_t i = 0; i < sched.procs.load(relaxed); ++i) {
    timer_heap& timers = sched.all_ps[i].load(relaxed)->timers;
    timers.tidy();
    timers.shrink();
  }
}

// Only the first part is inside the runtime, so that the P may be taken if the rest takes long.
void give_memory_back() noexcept {
  {
    runtime_scope scope;
    empty_idle_caches(scope.m());
  }
  stack_release_free_pages();
  g_release_free();
  blocks_release_free();
}

void keep_house(void*) noexcept {
  for (;;) {
    wait_for_tick();
    give_memory_back();
    clear_stopped_timers();
    if (auto hook = sched.tick_hook.load(acquire)) hook();
  }
}

}  // namespace

void start_housekeeper() {
  G* g = spawn_begin(0);
  g->set_mark(mark::system);
  g->entry = keep_house;
  g->closure = nullptr;
  g->spawn_pc = nullptr;
  spawn_commit(g);
}

nanos next_forced_tick() noexcept {
  return saturating_add(sched.last_forced_tick.load(relaxed), sched.options.force_tick_period);
}

void force_tick_if_due(nanos now) noexcept {
  if (now < next_forced_tick()) return;
  sched.last_forced_tick.store(now, relaxed);  // even if the last tick is not over yet: then this one is left out
  G* g;
  {
    lock_guard hold(sched.mutex);
    g = std::exchange(sched.housekeeper, nullptr);
  }
  if (g) ready(g);
}

}  // namespace weft::rt
