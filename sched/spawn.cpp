// Spawning: a G from the P's free list, its closure on its own stack, then onto the run queue as the next to run.

#include "sched/proc.hpp"

#include <stdexcept>

namespace weft::rt {

namespace {

constexpr std::size_t free_batch = 32;  // how many Gs move between a P's free list and their class's
constexpr std::uint64_t id_batch = 16;

// A G of the default class from the P's free list, refilled from the class's; null: there is none.
G* take_free(P* p) noexcept {
  if (G* g = p->free_gs.pop()) return g;
  G* batch[free_batch];
  std::size_t n = stack_take_free(sched.default_stacks, batch, free_batch);
  for (std::size_t i = 0; i < n; ++i) p->free_gs.push(batch[i]);
  return p->free_gs.pop();
}

// Every goroutine can be in the global queue, and where one is put there nothing may fail: room for a new one is made
// while it is spawned.
void make_room_in_global_queue() {
  std::size_t slots = stack_slots();
  if (WEFT_LIKELY(slots <= sched.global_room.load(relaxed))) return;
  lock_guard hold(sched.mutex);
  sched.global.reserve(slots);
  sched.global_room.store(sched.global.capacity(), relaxed);
}

void first_steps(thread_state* ts) noexcept { leave_runtime(static_cast<M*>(ts)); }

constexpr goroutine_frame frame{first_steps, end_goroutine};

std::uint64_t next_id(P* p) noexcept {
  if (!p) return sched.next_g_id.fetch_add(1, relaxed);
  if (p->id_next == p->id_end) {
    p->id_next = sched.next_g_id.fetch_add(id_batch, relaxed);
    p->id_end = p->id_next + id_batch;
  }
  return p->id_next++;
}

}  // namespace

void throw_if_not_running(const char* what) {
  if (!sched.running.load(acquire)) {
    throw std::logic_error(fmt::format("weft: {} without a running runtime: call it inside weft::run()", what));
  }
}

G* spawn_begin(std::size_t stack_size) {
  runtime_scope scope;
  stack_class* c = sched.default_stacks;
  if (stack_size != 0 && stack_size != stack_size_of(c)) c = stack_class_for(stack_size);
  G* g = nullptr;
  if (c == sched.default_stacks && scope.m()) g = take_free(scope.m()->p.load(relaxed));
  if (!g) {
    g = stack_take(c);
    try {
      make_room_in_global_queue();
    } catch (...) {
      spawn_abort(g);
      throw;
    }
  }
  g->closure = nullptr;
  return g;
}

void spawn_abort(G* g) noexcept {
  g->name[0] = '\0';
  stack_put(g->origin, &g, 1);
}

std::uint64_t spawn_commit(G* g) noexcept {
  runtime_scope scope;
  P* p = scope.m() ? scope.m()->p.load(relaxed) : nullptr;
  std::uint64_t id = next_id(p);
  g->id = id;
  prepare(g, &frame);
  g->set_state(g_state::idle, g_state::runnable);
  if (p) {
    if (!g->system) p->count.spawned.add();
    runqput(p, g, put_where::next);  // A1
  } else {
    lock_guard hold(sched.mutex);
    if (!sched.running.load(relaxed) || sched.shutting_down.load(relaxed)) return id;  // it never runs
    if (!g->system) sched.foreign_spawned.fetch_add(1, relaxed);
    global_put(g);
  }
  if (sched.idle_ps.load(seq_cst) != 0) wakep();  // A2
  return id;
}

void recycle(G* g, M* m) noexcept {
  g->set_state(g_state::dead, g_state::idle);
  g->closure = nullptr;
  g->name[0] = '\0';
  g->system = false;
  P* p = m->p.load(relaxed);
  if (g->origin != sched.default_stacks) return stack_put(g->origin, &g, 1);
  if (p->free_gs.full()) {
    G* batch[free_batch];
    p->free_gs.drop_oldest(free_batch, batch);
    stack_put(sched.default_stacks, batch, free_batch);
  }
  p->free_gs.push(g);  // the warmest stack is the next to be used
}

std::size_t count_goroutines() noexcept {
  if (!sched.running.load(acquire)) return 0;
  // Ended first: a goroutine that starts and ends in between is then not counted at all, rather than as minus one.
  std::uint64_t ended = sched.ended_before;
  for (auto& slot : sched.all_ps) {
    P* p = slot.load(acquire);
    if (!p) break;
    ended += p->count.ended.get();
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
