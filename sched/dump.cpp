// The dump of goroutines, for fatal errors, SIGQUIT and dump_goroutines(). Goroutines that are the same but for their
// number (same trace, same reason, same place of start) are shown once, with a head for them all, and a list of who
// they are where the head cannot say that; so a dump of a hundred thousand is hardly longer than the program has places
// to wait in.
//
// Allocates nothing but what demangling a name needs, and takes no lock.

#include "sched/dump.hpp"

#include "runtime/g_pool.hpp"
#include "runtime/report.hpp"
#include "runtime/roomy_stack.hpp"
#include "runtime/thread.hpp"
#include "sched/dump_head.hpp"
#include "sched/scheduler.hpp"

#include <algorithm>
#include <pthread.h>
#include <span>
#include <sys/mman.h>
#include <unistd.h>

namespace weft::rt {

namespace {

// Sorted by these: within a group by id; and the groups, the largest first, those of equal size by their first id.
bool by_key(const dump_entry& a, const dump_entry& b) noexcept { return a.key != b.key ? a.key < b.key : a.id < b.id; }
bool by_size(const dump_entry& a, const dump_entry& b) noexcept {
  return a.group_size != b.group_size ? a.group_size > b.group_size : a.id < b.id;
}

class key_maker {
 public:
  void add(std::uint64_t v) noexcept { key_ = hash_on(key_, v); }
  void add(const void* p) noexcept { add(reinterpret_cast<std::uintptr_t>(p)); }
  std::uint64_t get() const noexcept { return key_; }

 private:
  std::uint64_t key_ = 0x6a09e667f3bcc908u;
};

bool is_shown(const G* g) noexcept {
  g_state s = state_of(g);
  return s != g_state::idle && s != g_state::dead && s != g_state::abandoned && !g->is_system();
}

bool runs_elsewhere(const G* g) noexcept {
  g_state s = state_of(g);
  return s == g_state::running || s == g_state::syscall;
}

// No M has a P, so no goroutine that does not run begins to, and its stack can be read. False where the world could not
// be stopped: some M is stuck in the runtime, or is not given a processor.
bool all_ps_stand_still() noexcept {
  for (std::uint32_t i = 0; i < sched.procs.load(acquire); ++i) {
    p_status s = sched.all_ps[i].load(acquire)->status.load(acquire);
    if (s == p_status::running || s == p_status::syscall) return false;
  }
  return true;
}

// Room for `n` that is not the heap's, and is memory as it is used. None, if the kernel has none.
template <class T>
class list {
 public:
  explicit list(std::size_t n) noexcept : bytes_(n * sizeof(T)) {
    void* at =
        n == 0 ? MAP_FAILED
               : ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return;
    first_ = static_cast<T*>(at);
    room_ = n;
  }
  ~list() {
    if (first_) ::munmap(first_, bytes_);
  }
  list(const list&) = delete;
  list& operator=(const list&) = delete;

  void add(const T& e) noexcept {
    if (used_ < room_) first_[used_++] = e;
  }
  std::size_t room_left() const noexcept { return room_ - used_; }
  std::span<T> all() const noexcept { return {first_, used_}; }

 private:
  std::size_t bytes_;
  T* first_ = nullptr;
  std::size_t room_ = 0, used_ = 0;
};

// The traces that make up the keys, for when they are shown: unwinding a stack is what takes most of the time of a
// dump. Of those with one key only one is kept, as a rule. Each is {frames, left out, pc, ...}.
class kept_traces {
 public:
  explicit kept_traces(std::size_t goroutines) noexcept : words_(1 + goroutines * longest) { words_.add(0); }

  // Where it lies; 0: there is none, or no room for it.
  std::size_t keep(std::uint64_t key, const trace& t) noexcept {
    if (t.size == 0) return 0;
    known& k = known_[key % std::size(known_)];
    if (k.key == key && k.at != 0) return k.at;
    if (words_.room_left() < longest) return 0;
    k = {key, words_.all().size()};
    words_.add(t.size);
    words_.add(t.left_out);
    for (std::size_t i = 0; i < t.size; ++i) words_.add(reinterpret_cast<std::uintptr_t>(t.frames[i].pc));
    return k.at;
  }
  void get(std::size_t at, trace* out) const noexcept {
    std::span<const std::uint64_t> w = words_.all().subspan(at);
    out->size = w[0];
    out->left_out = w[1];
    for (std::size_t i = 0; i < out->size; ++i) out->frames[i] = {reinterpret_cast<const void*>(w[2 + i]), true};
  }

 private:
  static constexpr std::size_t longest = 2 + trace::inner + trace::outer;
  struct known {
    std::uint64_t key = 0;
    std::size_t at = 0;
  };

  list<std::uint64_t> words_;
  known known_[64];
};

// t: gets the trace, none if the stack is not readable; null: not wanted.
std::uint64_t key_of(const G* g, trace* t) noexcept {
  key_maker key;
  key.add(static_cast<std::uint64_t>(state_of(g)));
  key.add(static_cast<std::uint64_t>(g->reason));
  key.add(static_cast<std::uint64_t>(g->marks() & mark::tied));
  key.add(g->spawn_pc);
  if (t) {
    t->size = t->left_out = 0;
    if (!runs_elsewhere(g)) trace_parked(g, t);
    for (std::size_t i = 0; i < t->size; ++i) key.add(t->frames[i].pc);
    key.add(t->left_out);
  }
  return key.get();
}

// So many at most: a million of them would have little to say.
void write_members(report& out, std::span<const dump_entry> group) noexcept {
  constexpr std::size_t most_lines = 200;
  for (std::size_t n = 0; !group.empty(); ++n) {
    if (n == most_lines) return out.line("    ... and {} more", group.size());
    const auto line = some_of(&group);
    out.line("    {}{}", line.get(), group.empty() ? "" : ",");
  }
}

void write_group(report& out, std::span<const dump_entry> group, nanos now, const kept_traces* traces) noexcept {
  const G* g = group[0].g;
  bool says_all;
  out.line("{}:", head_of(group, now, &says_all).get());
  if (!says_all) write_members(out, group);
  trace* t = out.scratch();
  if (!t) return;
  t->size = t->left_out = 0;
  if (!traces) {
    out.line("    (the scheduler does not stand still; its stack is not readable)");
  } else if (runs_elsewhere(g)) {
    out.line("    (runs on another thread; its stack is not readable from here)");
  } else if (!g->park_frame) {
    out.line("    (not started yet)");
  } else if (std::size_t at = group[0].trace_at) {
    traces->get(at, t);
  } else {
    trace_parked(g, t);
  }
  out.frames(*t);
  out.started_by(g);
  out.line("");
}

WEFT_NOINLINE void write_caller(report& out, const G* self, dump_of what) noexcept {
  if (self) {
    out.line("goroutine {} [{}{}]:", goroutine_name(self), describe(state_of(self)), describe_tie(self));
  } else {
    char name[16] = "";
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    out.line("thread {} '{}', not a goroutine:", ::gettid(), static_cast<const char*>(name));
  }
  trace* t = out.scratch();
  if (!t) return;
  trace_here(t, 2);
  // Where weft itself is at fault, its frames are what matters.
  bool whole = what == dump_of::caller_and_all;
  whole ? out.all_frames(*t) : out.frames(*t);
  if (self) out.started_by(self);
  out.line("");
}

std::size_t count_shown() noexcept {
  std::size_t n = 0;
  for_each_g([](G* g, void* arg) { *static_cast<std::size_t*>(arg) += is_shown(g); }, &n);
  return n;
}

void write_all(report& out, const G* self, bool with_stacks) noexcept {
  nanos now = nanotime();
  trace* scratch = out.scratch();
  if (!scratch) return;
  const std::size_t n = count_shown();
  struct collection {
    list<dump_entry> entries;
    kept_traces traces;
    const G* self;
    trace* scratch;  // null: without stacks
  } found{list<dump_entry>(n), kept_traces(with_stacks ? n : 0), self, with_stacks ? scratch : nullptr};
  for_each_g(
      [](G* g, void* arg) {
        auto* c = static_cast<collection*>(arg);
        if (g == c->self || !is_shown(g)) return;
        std::uint64_t key = key_of(g, c->scratch);
        c->entries.add({g, g->id, key, 0, c->scratch ? c->traces.keep(key, *c->scratch) : 0});
      },
      &found);
  std::span<dump_entry> all = found.entries.all();
  std::sort(all.begin(), all.end(), by_key);
  list<dump_entry> groups(all.size());
  for (std::size_t i = 0, end; i < all.size(); i = end) {
    for (end = i + 1; end < all.size() && all[end].key == all[i].key;) ++end;
    // by_size has no use for the key any more: it tells where the group begins.
    groups.add({all[i].g, all[i].id, i, end - i, 0});
  }
  std::sort(groups.all().begin(), groups.all().end(), by_size);
  const kept_traces* traces = with_stacks ? &found.traces : nullptr;
  for (const dump_entry& e : groups.all()) write_group(out, all.subspan(e.key, e.group_size), now, traces);
}

void write_dump(int fd, dump_of what, names n) noexcept {
  thread_state* ts = this_thread_or_null();
  const G* self = ts && ts->g && ts->g->kind == g_kind::goroutine ? ts->g : nullptr;
  report out(fd, n);
  if (self || what != dump_of::all_goroutines) write_caller(out, self, what);
  // A fault of ours is shown with all that can be read, at the risk of reading what is being written.
  bool with_stacks = what == dump_of::caller_and_all || all_ps_stand_still();
  if (what != dump_of::caller) write_all(out, self, with_stacks);
}

}  // namespace

void dump_goroutines(int fd, dump_of what, names n) noexcept {
  on_roomy_stack([=] { write_dump(fd, what, n); });
}

}  // namespace weft::rt
