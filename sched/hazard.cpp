// WEFT_DEBUG=hazard=1: a fault that otherwise shows once in a million suspensions shows at each of them.
//
// A goroutine that was suspended continues on another M than before, even if there is only one P: the M that picks the
// goroutine from a queue passes it on together with the P. And a system mutex that is held across a suspension is
// reported: one thread has locked it, and another will unlock it.
//
// Every M has request::hazard in its request word for good, so each suspension goes by the scheduler's loop. Without
// hazard this costs nothing: the fast paths check only whether the request word is zero, as they do anyway.

#include "sched/hazard.hpp"

#include "runtime/held_locks.hpp"
#include "runtime/report.hpp"
#include "runtime/roomy_stack.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <unistd.h>

namespace weft::rt {

namespace {

// The places that were reported. When this is full, nothing more is reported.
std::array<atomic<std::uint64_t>, 256> reported{};

bool is_new(const trace& t) noexcept {
  const std::uint64_t place = hash_places(t, 0, 1);
  for (auto& slot : reported) {
    std::uint64_t there = 0;  // relaxed: the number publishes nothing else
    if (slot.compare_exchange_strong(there, place, relaxed, relaxed)) return true;
    if (there == place) return false;
  }
  return false;
}

// True for a function of std::mutex and its friends. Compiled without optimisation, these are functions of their own,
// between pthread_mutex_lock and the function that wanted the lock.
bool is_wrapper(const symbol& s) noexcept {
  std::string_view name = s.function ? s.function : "";
  if (name.find("__gthread_") != name.npos) return true;
  for (std::string_view prefix : {"_ZNSt5mutex", "_ZNSt15recursive_mutex", "_ZNSt11timed_mutex", "_ZNSt10lock_guard",
                                  "_ZNSt11unique_lock", "_ZNSt11scoped_lock"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

// True if the function keeps a frame record, so that the next address in held_lock::callers is in its caller.
bool keeps_frame_record(trace_frame f, const symbol& s) noexcept {
#if defined(__x86_64__)
  static constexpr unsigned char landing[] = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64
  static constexpr unsigned char record[] = {0x55, 0x48, 0x89, 0xe5};   // push %rbp; mov %rsp, %rbp
  const auto* code = static_cast<const unsigned char*>(f.inside()) - s.function_offset;
  if (std::equal(std::begin(landing), std::end(landing), code)) code += sizeof landing;
  return std::equal(std::begin(record), std::end(record), code);
#else
  (void)f, (void)s;
  return false;  // not known: the report names the wrapper
#endif
}

// Returns the place that wanted the lock: the first of the lock's callers that is not a wrapper, as far as they are
// known.
trace_frame locked_in(report& out, const held_lock& lock) noexcept {
  std::size_t i = 0;
  for (; i + 1 < held_lock::most_callers && lock.callers[i + 1]; ++i) {
    trace_frame f{lock.callers[i]};
    symbol s = out.symbol_of(f);
    if (!is_wrapper(s) || !keeps_frame_record(f, s)) break;
  }
  return {lock.callers[i]};
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
    char before[64];
    const char* end = fmt::format_to_n(before, sizeof before, "    mutex {}, locked in ", held.list[i].mutex).out;
    out.frame({before, end}, locked_in(out, held.list[i]));
  }
  out.frames(*t);
  out.started_by(g->spawn_pc);
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
