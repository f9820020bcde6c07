// The beginning and the end of a goroutine.
//
// Spawning takes a G from the P's free list, and queues it as the next to run. The goroutine has no stack yet. begin()
// gives it one when it is first dispatched, or it begins in place, on the stack of a goroutine that ends (park.cpp:
// end_goroutine). So a goroutine that waits for its first turn costs only a header, and ten thousand goroutines that
// run to their end one after the other use one stack.
//
// Two kinds of goroutines get their stack at once: those whose closure is too large for the header, as it goes to the
// top of the stack, and those whose stack is not of the default size, as it comes from another stack class.
//
// Dispatching or queueing a goroutine must not fail. Therefore no G is taken before there is room for it
// (make_room_for_goroutines): in the global queue, and among the stack slots of the default class, not counting those
// that the Ps may keep free in their caches. Goroutines that earlier runs left behind keep their Gs and stacks, and are
// counted separately. All of these counts change under sched.room: a plain thread's go() may ask for room while one
// run() ends and the next begins, and must not raise the room of one run() by what was reserved in the stack class of
// the other.
//
// Such a go() may also get its room in one run() and be ready to queue its goroutine in the next. That goroutine never
// runs, as if it had been started a moment before the end of the first run(): there is no room for it in the next one
// (G::run, spawn_commit). It must not run for another reason, too: a task's join() does not wait for it then, so what
// it refers to may be gone.

#include "sched/spawn.hpp"

#include "runtime/g_pool.hpp"
#include "runtime/stack_use.hpp"
#include "sched/blocks.hpp"
#include "sched/enter.hpp"
#include "sched/latency.hpp"
#include "sched/lifecycle.hpp"
#include "sched/proc.hpp"
#include "sched/runqueues.hpp"

#include <algorithm>
#include <utility>

namespace weft::rt {

namespace {

constexpr std::size_t batch_size = p_cache / 2;  // how many Gs move between a P's cache and the pool behind it
constexpr std::uint64_t id_batch = 16;

// --- the caches of a P. What is done when they are empty or full is in separate functions, which need more registers.

WEFT_NOINLINE G* take_gs_from_pool(P* p) noexcept {
  G* batch[batch_size];
  std::size_t n = g_take_free(batch, batch_size, sched.goroutine_room.load(relaxed));
  for (std::size_t i = 0; i < n; ++i) p->free_gs.push(batch[i]);
  return p->free_gs.pop();
}

// Returns null if there is no free G.
inline G* take_free_g(P* p) noexcept {
  G* g = p->free_gs.pop();
  return WEFT_LIKELY(g != nullptr) ? g : take_gs_from_pool(p);
}

WEFT_NOINLINE void put_gs_into_pool(P* p) noexcept {
  G* batch[batch_size];
  p->free_gs.drop_oldest(batch_size, batch);
  g_put(batch, batch_size);
}

inline void put_free_g(P* p, G* g) noexcept {
  if (WEFT_UNLIKELY(p->free_gs.full())) put_gs_into_pool(p);
  p->free_gs.push(g);
}

WEFT_NOINLINE stack* take_stacks_from_class(P* p) noexcept {
  errno_stays keep;
  stack* batch[p_cache];
  std::size_t n = stack_take(sched.default_stacks.load(relaxed), batch, sched.stack_cache);  // does not fail: reserved
  while (n > 1) p->free_stacks.push(batch[--n]);
  return batch[0];
}

inline stack* take_stack(P* p) noexcept {
  stack* s = p->free_stacks.pop();
  return WEFT_LIKELY(s != nullptr) ? s : take_stacks_from_class(p);
}

WEFT_NOINLINE void put_stacks_into_class(P* p) noexcept {
  stack* batch[p_cache];
  std::size_t n = (sched.stack_cache + 1) / 2;
  p->free_stacks.drop_oldest(n, batch);
  stack_put(sched.default_stacks.load(relaxed), batch, n);
}

inline void put_free_stack(P* p, stack* s) noexcept {
  s->user = nullptr;
  if (WEFT_UNLIKELY(s->origin != sched.default_stacks.load(relaxed))) return stack_put(s->origin, &s, 1);
  if (WEFT_UNLIKELY(p->free_stacks.size() >= sched.stack_cache)) put_stacks_into_class(p);
  p->free_stacks.push(s);  // the next to be used, as it is the warmest
}

void give_stack(G* g, stack_class* c) {
  stack* s;
  stack_take(c, &s, 1);
  s->user = g;
  g->own_stack = s;
}

void clean(G* g) noexcept {
  g->context = nullptr;
  g->park_frame = nullptr;
  if (WEFT_UNLIKELY(asan_running())) g->fake_stack = nullptr;
  if (WEFT_UNLIKELY(g->marks() & mark::uses_seldom)) {
    g->name[0] = '\0';
    g->no_preemption = 0;
    g->lock_depth = g->pin_depth = 0;  // main may have ended locked or pinned
  }
  g->marks_word.store(0, relaxed);
}

std::uint64_t next_id(P* p) noexcept {
  if (!p) return sched.next_g_id.fetch_add(1, relaxed);
  if (p->id_next == p->id_end) {
    p->id_next = sched.next_g_id.fetch_add(id_batch, relaxed);
    p->id_end = p->id_next + id_batch;
  }
  return p->id_next++;
}

// Makes room for `step` goroutines more than are in use. Called under sched.room.
void make_room_for(std::size_t step) {
  stack_class* c = sched.default_stacks.load(relaxed);
  std::size_t in_use = g_in_use();
  std::size_t room = sched.goroutine_room.load(relaxed);
  std::size_t want = std::max(in_use + step, room) - sched.left_behind_gs;
  std::size_t in_caches = 0;
  for (auto& slot : sched.all_ps) {
    if (!slot.load(acquire)) break;
    in_caches += sched.stack_cache;
  }
  stack_reserve(c, sched.left_behind_stacks + want + in_caches);
  lock_guard hold(sched.mutex);
  sched.global.reserve(want);
  sched.newcomers.reserve(want);
  sched.suspects.reserve(want);
  sched.goroutine_room.store(sched.left_behind_gs + want, relaxed);
}

// Called under sched.room.
void make_room_locked() {
  const std::size_t least = stack_slots_per_slab(sched.default_stacks.load(relaxed));
  const std::size_t step = std::max(least, g_in_use() / 8);
  try {
    make_room_for(step);
  } catch (const std::bad_alloc&) {
    if (step == least) throw;
    make_room_for(least);
  }
}

}  // namespace

void make_room_for_goroutines() {
  lock_guard hold(sched.room);
  make_room_locked();
}

void begin_room_for_goroutines(std::size_t stack_size) {
  stack_class* c = stack_class_for(stack_size);
  lock_guard hold(sched.room);
  sched.default_stacks.store(c, relaxed);
  sched.left_behind_gs = g_in_use();
  sched.left_behind_stacks = stack_in_use(c);
  sched.stack_cache = std::clamp<std::size_t>(stack_slots_per_slab(c) / 4, 1, p_cache);
  sched.goroutine_room.store(sched.left_behind_gs, relaxed);
  make_room_locked();
}

G* spawn_begin(std::size_t stack_size) {
  runtime_scope scope(enter_without_locks());
  P* p = scope.m() ? scope.m()->p.load(relaxed) : nullptr;
  const std::uint64_t run = p ? 0 : sched.run_number.load(acquire);
  if (p) p->joins.by = nullptr;
  G* g = p ? take_free_g(p) : nullptr;
  while (WEFT_UNLIKELY(!g)) {
    g = g_take(sched.goroutine_room.load(relaxed));
    if (!g) make_room_for_goroutines();
  }
  if (WEFT_UNLIKELY(stack_size != 0)) {
    try {
      stack_class* c = stack_class_for(stack_size);
      if (c != sched.default_stacks.load(relaxed)) give_stack(g, c);
    } catch (...) {
      spawn_abort(g);
      throw;
    }
  }
  if (WEFT_UNLIKELY(!p)) g->run = run;
  g->id = next_id(p);
  return g;
}

void* large_closure_room(G* g, std::size_t size, std::size_t align) {
  if (!g->own_stack) {
    runtime_scope scope(enter_without_locks());
    give_stack(g, sched.default_stacks.load(relaxed));
  }
  return reserve_closure(g, size, align);
}

void spawn_abort(G* g) noexcept {
  clean(g);
  if (stack* s = std::exchange(g->own_stack, nullptr)) {
    s->user = nullptr;
    stack_put(s->origin, &s, 1);
  }
  g_put(&g, 1);
}

bool begins_at_once(const P* p, const G* g) noexcept { return g->own_stack || p->free_stacks.size() != 0; }

void begin(P* p, G* g) noexcept { begin_on(g, g->own_stack ? g->own_stack : take_stack(p)); }

void empty_caches(P* p) noexcept {
  while (G* g = p->free_gs.pop()) g_put(&g, 1);
  while (stack* s = p->free_stacks.pop()) stack_put(s->origin, &s, 1);
  empty_block_caches(p);
}

void empty_idle_caches(M* m) noexcept {
  empty_caches(m->p.load(relaxed));
  lock_guard hold(sched.mutex);
  for (P* p = sched.idle_p_list; p; p = p->next_idle) empty_caches(p);
  sched.global.release_unused();
  sched.newcomers.release_unused();
  sched.suspects.release_unused();
}

void empty_all_caches() noexcept {
  for (auto& slot : sched.all_ps) {
    P* p = slot.load(acquire);
    if (!p) return;
    empty_caches(p);
  }
}

namespace {

// The general case of spawn_commit, which has already put the spawner's floating-point control into g.
WEFT_NOINLINE void commit_slow(M* m, G* g) noexcept {
  runtime_scope scope(m ? m : enter_without_locks());
  P* p = scope.m() ? scope.m()->p.load(relaxed) : nullptr;
  help h = help::now;
  if (p) {
    g->set_state(g_state::idle, g_state::runnable);
    if (!g->is_system()) time_one_in_64(g, p->count.spawned.add());
    h = runqput_next(p, g);  // A1
  } else {
    lock_guard hold(sched.mutex);
    if (is_over(g->run)) return abandon(g);
    g->set_state(g_state::idle, g_state::runnable);
    if (!g->is_system()) time_one_in_64(g, sched.foreign_spawned.fetch_add(1, relaxed) + 1);
    global_put(g);
  }
  wake_for_work(p, h);  // A2
}

WEFT_NOINLINE void help_and_leave(M* m, help h) noexcept {
  wakep(h);
  leave_runtime(m);
}

// True if there is nothing to do beyond queueing g in p's own queue, and counting.
bool is_simple(const P* p, const G* g) noexcept {
  return p && p->runq.room() != 0 && !g->is_system() && !is_timed(p->count.spawned.get() + 1);
}

}  // namespace

// The calls that this function makes are the last thing it does, so it saves no registers for them.
void spawn_commit(G* g) noexcept {
  g->floating.read_here();
  M* m = try_enter_runtime();
  P* p = p_of(m);
  if (WEFT_UNLIKELY(!is_simple(p, g))) return commit_slow(m, g);
  g->set_state(g_state::idle, g_state::runnable);
  p->count.spawned.add();
  help h = help::soon;
  if (G* before = p->runq.put_next(g)) {  // A1
    const bool fits = p->runq.put(before, run_queue::barrier::publish);
    WEFT_CHECK(fits, "P {} had room, and takes no goroutine", p->id);
    (void)fits;
    h = more_than_next(p);
  }
  if (WEFT_UNLIKELY(sched.idle_ps.load(seq_cst) != 0)) return help_and_leave(m, h);  // A2
  leave_runtime(m);
}

void recycle(P* p, G* g) noexcept {
  if (WEFT_UNLIKELY(measuring_stacks.load(relaxed))) note_stack_use(g);
  g->set_state(g_state::dead, g_state::idle);
  clean(g);
  if (stack* s = std::exchange(g->own_stack, nullptr)) put_free_stack(p, s);
  put_free_g(p, g);
}

std::size_t count_goroutines() noexcept {
  if (!sched.running.load(acquire)) return 0;
  // Those that have ended are counted first, so one that starts and ends in between counts as alive. acquire: a thread
  // that sees that a goroutine has ended also sees that it was started.
  std::uint64_t ended = sched.ended_before.load(relaxed);
  for (auto& slot : sched.all_ps) {
    P* p = slot.load(acquire);
    if (!p) break;
    ended += p->count.ended.get_acquire();
  }
  std::uint64_t spawned = sched.foreign_spawned.load(relaxed);
  for (auto& slot : sched.all_ps) {
    P* p = slot.load(acquire);
    if (!p) break;
    spawned += p->count.spawned.get();
  }
  return spawned > ended ? static_cast<std::size_t>(spawned - ended) : 0;
}

}  // namespace weft::rt
