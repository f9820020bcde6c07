// WEFT_DEBUG=schedtrace=MS[,scheddetail=1]: prints a line about the scheduler to stderr every MS milliseconds, in Go's
// format; with detail, also a line for each P, M and G. The numbers change while they are read: each is right, but they
// are not from the same moment. The Gs come last, as the world is stopped for them, and its Ps with it.

#include "runtime/g_pool.hpp"
#include "sched/world.hpp"
#include "sysmon/sysmon.hpp"

#include <iterator>
#include <new>
#include <unistd.h>

namespace weft::rt {

namespace {

using text = fmt::basic_memory_buffer<char, 4096>;

const char* name_of(p_status s) noexcept {
  switch (s) {
    case p_status::idle: return "idle";
    case p_status::running: return "running";
    case p_status::syscall: return "syscall";
    case p_status::stopped: return "stopped";
    case p_status::dead: return "dead";
  }
  return "?";
}

void write_ps(text& out) {
  for (std::uint32_t i = 0; i < sched.procs.load(relaxed); ++i) {
    const P* p = sched.all_ps[i].load(acquire);
    fmt::format_to(std::back_inserter(out), "  P{}: status={} schedtick={} syscalltick={} runqsize={} timers={}\n", i,
                   name_of(p->status.load(relaxed)), p->sched_tick.load(relaxed), p->syscall_tick.load(relaxed),
                   p->runq.size(), p->timers.size());
  }
}

// Called under sched.mutex.
void write_ms(text& out) {
  for (const M* m : sched.all_ms) {
    const P* p = m->p.load(relaxed);
    fmt::format_to(std::back_inserter(out), "  M{}: p={} spinning={} idle={} locked={} thread={}\n", m->id,
                   p ? static_cast<int>(p->id) : -1, m->spinning.load(relaxed), m->in_idle_list,
                   m->locked_g.load(relaxed) != nullptr, m->tid.load(relaxed));
  }
}

void write_gs(text& out) {
  for_each_g(
      [](G* g, void* arg) {
        g_state s = g->get_state();
        if (s == g_state::idle || s == g_state::dead || s == g_state::abandoned) return;
        fmt::format_to(std::back_inserter(*static_cast<text*>(arg)), "  G{}: status={}({})\n", g->id, describe(s),
                       s == g_state::waiting ? describe(g->reason) : "");
      },
      &out);
}

void write_scheduler(text& out, nanos since_start, bool detail) {
  lock_guard hold(sched.mutex);
  fmt::format_to(std::back_inserter(out),
                 "SCHED {}ms: procs={} idleprocs={} threads={} spinningthreads={} idlethreads={} runqueue={} [",
                 since_start / millisecond, sched.procs.load(relaxed), sched.idle_ps.load(relaxed), sched.live_ms,
                 sched.spinning.load(relaxed), sched.idle_ms, sched.global.size());
  for (std::uint32_t i = 0; i < sched.procs.load(relaxed); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{}", i ? " " : "", sched.all_ps[i].load(relaxed)->runq.size());
  }
  fmt::format_to(std::back_inserter(out), "]\n");
  if (!detail) return;
  write_ps(out);
  write_ms(out);
}

}  // namespace

void trace_scheduler(nanos since_start) noexcept {
  text out;
  const bool detail = sched.options.trace_detail;
  bool world_is_ours = false;
  try {
    write_scheduler(out, since_start, detail);
    M* none = nullptr;
    world_is_ours = detail && acquire_world(&none, nanotime() + patience_of_sysmon);
    if (world_is_ours) write_gs(out);
  } catch (const std::bad_alloc&) {
    // The trace is cut off where memory ran out.
  }
  if (world_is_ours) release_world();
  write_without_waiting(STDERR_FILENO, {out.data(), out.size()});
}

}  // namespace weft::rt
