// Newcomers: goroutines that have not begun, while many threads run without a P (sysmon's gate says when). Any of them
// may turn out to compute without end. So they begin one at a time, by a turn: at most one P is held by a goroutine
// that nobody knows yet, and the other Ps are for goroutines that have begun. That way a program whose new goroutines
// all keep their threads still has its tickers and its connections.
//
// While this lasts, each dispatch goes by the scheduler's loop, which puts a goroutine that has not begun aside. A P
// with nothing else to run takes the turn, and with it one of the goroutines put aside. Now and then a P that has
// something else to run does so, too (shared_one), until none is aside any more. The turn comes back when that
// goroutine parks, yields or ends. If it does none of these, sysmon takes the P away, and the turn with it.
//
// Newcomers that were started in the same place as a goroutine that computes for long are suspects. They are put aside
// separately: after one that computes, the next suspect waits for a while (suspects_wait), and the other newcomers go
// on. A suspect that parks, yields, ends or blocks acquits all that were started there: on a loaded machine a thread
// that is about to block looks like one that computes.
//
// A newcomer in runnext begins without the turn, unless it is the next one of a kind that sysmon has on trial for the
// first time, or all newcomers have to wait. Its spawner most likely waits for it, and neither should have to wait for
// the crowd. So every P may be held by a goroutine that nobody knows. If one of these loses its P, it is tried like one
// that had the turn (sysmon/gate.cpp), so that few of each kind begin in this way if they compute. Suspects may do so,
// too, until one of them loses its P; then again when suspects no longer have to wait. Otherwise those that only answer
// a request would wait behind others of their kind that compute for long. They acquit nobody.
//
// append-check-wake (proc.cpp), for goroutines that are put aside:
//
//     an M that puts one aside     a thread that ends a turn    an M that finds nothing
//     A1  append it                A1  turn_is_free = true      S1  ++idle_ps
//     A2  a P idles, and the       A2  a P idles, and the       S2  --spinning
//         next may begin? wakep        next may begin? wakep    S3  may the next begin?
//
//     let_suspects_begin and let_newcomers_begin do the same with what they change. All of it is seq_cst. "May the next
//     begin?" reads several words, one after the other. Each A1 makes one of these words allow a start. If two A1 race,
//     the A2 of the one that is later in the single order, or an S3 after it, reads both changes. So one of these
//     threads wakes an M, or looks itself. The model is tests/model/newcomers.pml.

#include "sched/newcomers.hpp"

#include "sched/proc.hpp"

#include <algorithm>

namespace weft::rt {

namespace {

constexpr int sorted_at_once = 256;  // at most, as it is done under sched.mutex

void store_sizes() noexcept {
  auto set = [](atomic<std::uint32_t>& size, std::size_t n) { size.store(static_cast<std::uint32_t>(n), seq_cst); };
  set(sched.newcomers_size, sched.newcomers.size() + sched.unsorted);  // A1
  set(sched.suspects_size, sched.suspects.size() - sched.unsorted);    // A1
}

bool need_turn() noexcept { return sched.newcomers_wait.load(seq_cst); }

// A2
void wake_for_newcomers() noexcept {
  if (sched.idle_ps.load(seq_cst) != 0 && newcomers_may_begin()) wakep();
}

// From here on each dispatch goes by the scheduler's loop (plan_next_look). An owner that has just planned otherwise
// may overwrite this; sysmon does it again.
void let_all_come_by() noexcept {
  std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) sched.all_ps[i].load(acquire)->next_look.store(1, relaxed);
}

// Under sched.mutex.
bool is_suspect(const void* kind) noexcept {
  return kind && std::find(sched.hog_kinds.begin(), sched.hog_kinds.end(), kind) != sched.hog_kinds.end();
}
bool is_suspect(const G* g) noexcept { return is_suspect(g->spawn_pc); }

// Under sched.mutex. True if g, to which its spawner has given way, may begin without the turn.
bool may_begin_at_once(const G* g, bool suspected) noexcept {
  if (!g->spawn_pc || sched.all_newcomers_wait) return false;
  return suspected ? sched.suspects_at_once : g->spawn_pc != sched.kind_on_trial;
}

// Under sched.mutex.
void clear_of_suspicion(const void* kind) noexcept {
  if (!is_suspect(kind)) return;
  std::replace(sched.hog_kinds.begin(), sched.hog_kinds.end(), kind, static_cast<const void*>(nullptr));
  sched.unsorted = sched.suspects.size();
  store_sizes();
}

// Under sched.mutex.
G* next_suspect() noexcept {
  if (sched.unsorted != 0) --sched.unsorted;
  return sched.suspects.pop_front();
}

// Under sched.mutex. Returns the next newcomer that may begin. Null: there is none, or more than a few had to be put
// with the suspects.
G* next_newcomer(bool turn) noexcept {
  if (!turn || !sched.suspects_wait.load(relaxed)) {
    if (G* g = next_suspect()) return g;
  }
  for (int i = 0; i < sorted_at_once; ++i) {
    G* g = sched.unsorted != 0 ? next_suspect() : sched.newcomers.pop_front();
    if (!g || !turn || !is_suspect(g)) return g;
    sched.suspects.push_back(g);
  }
  return nullptr;
}

}  // namespace

std::size_t newcomers_aside() noexcept {
  return sched.newcomers_size.load(relaxed) + sched.suspects_size.load(relaxed);
}

bool newcomers_may_begin() noexcept {
  bool any = sched.newcomers_size.load(seq_cst) != 0;
  bool suspects = sched.suspects_size.load(seq_cst) != 0;
  if (!any && !suspects) return false;
  if (!need_turn()) return true;
  return sched.turn_is_free.load(seq_cst) && (any || !sched.suspects_wait.load(seq_cst));
}

bool newcomers_want(P* p) noexcept {
  return newcomers_may_begin() || (p->has_turn.load(relaxed) && newcomers_aside() != 0);
}

bool put_newcomer_aside(P* p, G* g, bool was_next) noexcept {
  if (!need_turn() || g->context || g->is_system() || p->has_turn.load(relaxed)) return false;
  {
    lock_guard hold(sched.mutex);
    const bool suspected = is_suspect(g);
    if (was_next && may_begin_at_once(g, suspected)) {
      p->began = {g->spawn_pc, dispatches(p) + 1};
      return false;
    }
    (suspected ? sched.suspects : sched.newcomers).push_back(g);
    store_sizes();
  }
  wake_for_newcomers();
  return true;
}

G* take_newcomer(P* p) noexcept {
  if (newcomers_aside() == 0 || !newcomers_may_begin()) return nullptr;
  lock_guard hold(sched.mutex);
  bool turn = need_turn();
  if (turn && !sched.turn_is_free.load(relaxed)) return nullptr;
  G* g = next_newcomer(turn);
  store_sizes();
  if (g && turn) {
    sched.turn_is_free.store(false, relaxed);
    p->has_turn.store(true, relaxed);
    p->turn_kind = g->spawn_pc;
  }
  return g;
}

void return_turn(P* p) noexcept {
  if (WEFT_LIKELY(!p->has_turn.load(relaxed))) return;
  if (end_turn(p)) give_turn_back();
}

bool take_turn_away(P* p) noexcept {
  if (!p->has_turn.load(relaxed)) return false;
  p->has_turn.store(false, relaxed);
  return true;
}

bool end_turn(P* p) noexcept {
  lock_guard hold(sched.mutex);
  if (!take_turn_away(p)) return false;
  clear_of_suspicion(p->turn_kind);
  return true;
}

bool withhold_turn() noexcept {
  lock_guard hold(sched.mutex);
  if (!sched.turn_is_free.load(relaxed)) return false;
  sched.turn_is_free.store(false, relaxed);
  return true;
}

void give_turn_back() noexcept {
  {
    lock_guard hold(sched.mutex);
    sched.turn_is_free.store(true, seq_cst);  // A1
  }
  wake_for_newcomers();
}

void put_on_trial(const void* kind) noexcept {
  lock_guard hold(sched.mutex);
  sched.kind_on_trial = kind;
}

bool suspect(const void* kind) noexcept {
  lock_guard hold(sched.mutex);
  sched.kind_on_trial = nullptr;
  if (is_suspect(kind)) return false;
  sched.hog_kinds[sched.next_hog_kind++ % sched.hog_kinds.size()] = kind;
  return true;
}

void acquit(const void* kind) noexcept {
  lock_guard hold(sched.mutex);
  sched.kind_on_trial = nullptr;
  clear_of_suspicion(kind);  // the thread that gives the turn back wakes an M
}

void make_suspects_wait(bool and_all_others) noexcept {
  lock_guard hold(sched.mutex);
  sched.all_newcomers_wait = and_all_others;
  sched.suspects_wait.store(true, relaxed);
}

void no_suspect_at_once() noexcept {
  lock_guard hold(sched.mutex);
  sched.suspects_at_once = false;
}

void let_suspects_begin() noexcept {
  {
    lock_guard hold(sched.mutex);
    sched.all_newcomers_wait = false;
    sched.suspects_at_once = true;
    sched.suspects_wait.store(false, seq_cst);  // A1
  }
  wake_for_newcomers();
}

void make_newcomers_wait() noexcept {
  sched.newcomers_wait.store(true, seq_cst);
  let_all_come_by();
}

void let_newcomers_begin() noexcept {
  {
    lock_guard hold(sched.mutex);
    sched.hog_kinds.fill(nullptr);
    sched.kind_on_trial = nullptr;
    sched.newcomers_wait.store(false, seq_cst);  // A1
  }
  let_all_come_by();
  let_suspects_begin();  // A2, for both
}

}  // namespace weft::rt
