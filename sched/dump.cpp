// The dump of goroutines, for fatal errors, SIGQUIT and dump_goroutines(). Goroutines with the same trace and the same
// reason to wait that were started in the same place are shown once, as a group with one head. If the head cannot tell
// all of their numbers and names, a list of these follows. So the length of a dump depends on the number of places in
// which the program waits, and hardly on the number of goroutines, even for a hundred thousand.
//
// A dump allocates nothing but what demangling a name needs, and takes no lock.

#include "sched/dump.hpp"

#include "runtime/report.hpp"
#include "runtime/roomy_stack.hpp"
#include "runtime/thread.hpp"
#include "sched/dump_head.hpp"
#include "sched/enter.hpp"
#include "sched/scheduler.hpp"

#include <algorithm>
#include <pthread.h>
#include <span>
#include <string_view>
#include <unistd.h>

namespace weft::rt {

namespace {

// Goroutines that are shown as a group.
struct goroutine_group {
  std::size_t begin, size;  // in the list of all goroutines, which is sorted by key
  std::uint64_t first_id;
};

// The largest group comes first; groups of equal size are ordered by first_id.
bool by_size(const goroutine_group& a, const goroutine_group& b) noexcept {
  return a.size != b.size ? a.size > b.size : a.first_id < b.first_id;
}

bool by_key(const seen_goroutine& a, const seen_goroutine& b) noexcept {
  return a.key != b.key ? a.key < b.key : a.id < b.id;
}

// True if no M has a P. Then no goroutine begins to run, so the stacks of those that do not run can be read. False if
// the world could not be stopped: some M is stuck in the runtime, or is not given a processor.
bool all_ps_stand_still() noexcept {
  for (std::uint32_t i = 0; i < sched.procs.load(acquire); ++i) {
    p_status s = sched.all_ps[i].load(acquire)->status.load(acquire);
    if (s == p_status::running || s == p_status::syscall) return false;
  }
  return true;
}

// Lists the goroutines of a group, in a limited number of lines: a list of a million would say little.
void write_members(report& out, std::span<const seen_goroutine> group) noexcept {
  constexpr std::size_t most_lines = 200;
  for (std::size_t n = 0; !group.empty(); ++n) {
    if (n == most_lines) return out.line("    ... and {} more", group.size());
    const auto line = some_of(&group);
    out.line("    {}{}", line.get(), group.empty() ? "" : ",");
  }
}

void write_group(report& out, std::span<const seen_goroutine> group, const snapshot& all) noexcept {
  const seen_goroutine& g = group[0];
  bool says_all;
  out.line("{}:", head_of(group, all.taken_at(), &says_all).get());
  if (!says_all) write_members(out, group);
  trace* t = out.scratch();
  if (!t) return;
  all.get_trace(g, t);
  if (!all.has_stacks()) {
    out.line("    (the scheduler does not stand still; its stack is not readable)");
  } else if (g.state == g_state::running || (g.state == g_state::syscall && t->size == 0)) {
    out.line("    (runs on another thread; its stack is not readable from here)");
  } else if (!g.begun) {
    out.line("    (not started yet)");
  } else if (t->size == 0) {
    out.line("    (no memory was left to keep its trace)");
  }
  out.frames(*t);
  out.started_by(g.spawn_pc);
  out.line("");
}

// Calls f(first, size) for each group. Sorts.
template <class F>
void for_each_group(std::span<seen_goroutine> all, F f) noexcept {
  std::sort(all.begin(), all.end(), by_key);
  for (std::size_t i = 0, end; i < all.size(); i = end) {
    for (end = i + 1; end < all.size() && all[end].key == all[i].key;) ++end;
    f(i, end - i);
  }
}

// Computes the keys anew, from the traces as they are shown: groups that would look alike become one group.
void put_together(report& out, const snapshot& s) noexcept {
  std::span<seen_goroutine> all = s.goroutines();
  for_each_group(all, [&](std::size_t first, std::size_t size) {
    trace* t = out.scratch();
    if (!t) return;
    s.get_trace(all[first], t);
    if (t->size == 0) return;
    const std::uint64_t key = all[first].key_with(out.hash_of_shown(*t));
    for (seen_goroutine& g : all.subspan(first, size)) g.key = key;
  });
}

void write_all(report& out, const snapshot& s) noexcept {
  put_together(out, s);
  std::span<seen_goroutine> all = s.goroutines();
  mapped_list<goroutine_group> groups(all.size());
  for_each_group(all, [&](std::size_t first, std::size_t size) { groups.add({first, size, all[first].id}); });
  std::sort(groups.all().begin(), groups.all().end(), by_size);
  for (const goroutine_group& g : groups.all()) write_group(out, all.subspan(g.begin, g.size), s);
}

// A thread that a goroutine started has the name of the M that the goroutine ran on, unless the program named it.
void write_thread(report& out) noexcept {
  char name[16] = "";
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  const bool inherited = !this_m() && std::string_view(name).starts_with(m_name_prefix);
  if (inherited) {
    out.line("thread {}, not a goroutine:", ::gettid());
  } else {
    out.line("thread {} '{}', not a goroutine:", ::gettid(), static_cast<const char*>(name));
  }
}

WEFT_NOINLINE void write_caller(report& out, const G* self, dump_of what) noexcept {
  if (self) {
    out.line("goroutine {} [{}{}]:", goroutine_name(self), describe(self->get_state()), describe_tie(self->marks()));
  } else {
    write_thread(out);
  }
  trace* t = out.scratch();
  if (!t) return;
  trace_here(t, 2);
  // If weft itself is at fault, its own frames are what matters.
  bool whole = what == dump_of::caller_and_all;
  whole ? out.all_frames(*t) : out.frames(*t);
  if (self) out.started_by(self->spawn_pc);
  out.line("");
}

// Returns the goroutine that runs on this thread, or null.
const G* caller() noexcept {
  thread_state* ts = this_thread_or_null();
  return ts && ts->g && ts->g->kind == g_kind::goroutine ? ts->g : nullptr;
}

}  // namespace

void goroutine_dump::take() noexcept {
  on_roomy_stack([this] { all_.take(caller(), all_ps_stand_still() ? stacks::of_all : stacks::none); });
}

void goroutine_dump::write(int fd, names n) noexcept {
  on_roomy_stack([=, this] {
    report out(fd, n);
    if (const G* self = caller()) write_caller(out, self, dump_of::all_goroutines);
    write_all(out, all_);
  });
}

void dump_goroutines(int fd, dump_of what, names n) noexcept {
  on_roomy_stack([=] {
    const G* self = caller();
    report out(fd, n);
    if (self || what != dump_of::all_goroutines) write_caller(out, self, what);
    if (what == dump_of::caller) return;
    snapshot all;
    // If weft is at fault, what waits is shown in any case, at the risk of reading what is being written.
    const stacks otherwise = what == dump_of::caller_and_all ? stacks::of_parked : stacks::none;
    all.take(self, all_ps_stand_still() ? stacks::of_all : otherwise);
    write_all(out, all);
  });
}

}  // namespace weft::rt
