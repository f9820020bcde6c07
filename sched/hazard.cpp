// WEFT_DEBUG=hazard=1: what would go wrong once in a million suspensions goes wrong at each.
//
// A goroutine that was suspended goes on on another M than before, also with one P: the M that picks it from a queue
// passes it on together with the P. And a mutex of the system that is held across a suspension is reported: the thread
// locked it, and another one will unlock it.
//
// Every M has request::hazard in its request word for good, so each suspension goes by the scheduler's loop, and where
// nothing is requested nothing has to be looked at.

#include "runtime/held_locks.hpp"
#include "runtime/report.hpp"
#include "runtime/roomy_stack.hpp"
#include "sched/proc.hpp"

#include <array>
#include <unistd.h>

namespace weft::rt {

namespace {

// Places that were reported. Full: no more reports.
std::array<atomic<std::uint64_t>, 256> reported{};

bool is_new(const trace& t) noexcept {
  std::uint64_t place = 1;
  for (std::size_t i = 0; i < t.size; ++i) {
    place = (place ^ reinterpret_cast<std::uintptr_t>(t.frames[i].pc)) * 0x9e3779b97f4a7c15u;
    place ^= place >> 29;
  }
  for (auto& slot : reported) {
    std::uint64_t there = 0;  // relaxed: the number is all there is
    if (slot.compare_exchange_strong(there, place, relaxed, relaxed)) return true;
    if (there == place) return false;
  }
  return false;
}

WEFT_NOINLINE void report_locks(const G* g, const held_locks& held) noexcept {
  report out(STDERR_FILENO, names::demangled);
  trace* t = out.scratch();
  if (!t) return;
  trace_here(t, 2);
  if (!is_new(*t)) return;
  out.line(
      "weft: hazard: goroutine {} [{}] holds {} while it is suspended; {}:", goroutine_name(g),
      g->get_state() == g_state::waiting ? describe(g->reason) : "gives way", held.size == 1 ? "a mutex" : "mutexes",
      g->marks() & mark::pinned_to_thread ? "others on its thread may want it" : "it will go on on another thread");
  for (std::size_t i = 0; i < held.size; ++i) {
    out.frame(fmt::format("    mutex {}, locked in ", held.list[i].mutex), {held.list[i].locked_at});
  }
  out.frames(*t);
  out.started_by(g);
}

}  // namespace

bool must_migrate(const M* m, const G* g) noexcept {
  return g->context && g->thread == m && !(g->marks() & mark::tied);
}

M* suspend_in_hazard(M* m, after_switch commit, void* arg) noexcept {
  watch_mutexes();
  held_locks held;
  take_held_locks(&held);
  if (held.size != 0 && !m->g->locked_to_thread()) on_roomy_stack([&] { report_locks(m->g, held); });
  m = static_cast<M*>(switch_to(m, &m->g0, commit, arg));
  give_held_locks(held);
  return m;
}

void forget_held_locks() noexcept {
  held_locks held;
  take_held_locks(&held);
}

}  // namespace weft::rt
