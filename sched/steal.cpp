// Stealing, and when not to.
//
// Crumbs. Stealing a goroutine moves its cache lines from one processor to another, and some of them move back when its
// G and its stack are used again. On 16 processors each empty goroutine that thieves came for took nine times as long
// as one that was started, run and ended where it was (docs/adr/0032-crumbs.md). So a thief that has run what it took
// and comes back for more looks at how long that was. If it was less than two thefts take, for each goroutine that the
// thief ran, the victim's ring holds crumbs. To hold work again, each goroutine must take as long as four thefts:
// contention makes small goroutines look larger. It may make them ten times as large, where the goroutines that were
// taken talk to those that were not. So what was taken is also crumbs if it was done in a few µs, less than waking the
// thief takes, and the victim itself runs so many goroutines that each has a quarter of a µs at most.
//
// Crumbs are left to their own P, which runs each in less time than a theft takes, and to the dozer (doze.cpp). The
// dozer looks every 100 µs. Unless it sees that the P still runs very many goroutines, it takes half of one ring, and
// judges anew. Two things tell the next thief that a ring of crumbs holds work after all: the last thief is still busy
// with what it took, or nothing else has moved at the victim since, as something long runs there. An M that leaves
// crumbs where they are leaves them to a dozer, if there is one; or it sees to it that there will be one; or it takes
// them in the end:
//
//     makes work ready in a ring of crumbs          an M that finds nothing else
//     A1  append it                                 S1, S2 as in proc.cpp
//     A2  spinning != 0: wakes no dozer             S3  crumbs: is there a dozer? If not, is the poller wanted
//         else wakes one M, as for any work             (proc.cpp), and does another M idle? Then wakes that one,
//                                                       and goes to the poller itself; else takes them
//     an M that found something                     the dozer
//     S2, then S3; only crumbs: wakes one M         D4  looks at every queue, and takes crumbs
//
//     An M that reads at S3 that there is a dozer goes to sleep in spite of the crumbs it has seen. The D3 of that
//     dozer comes later in the single order of seq_cst operations, and its D4 sees the crumbs. An M that is woken and
//     finds only crumbs becomes the dozer, or comes to S3. The model is tests/model/wake.pml, -DCRUMBS.
//
// What crumbs are is not part of the protocol: each M may get a different answer at any time, so relaxed loads and
// stores suffice. The dozer sleeps on only for goroutines that `go`, a yield, a channel or an unlock makes ready one by
// one: the poller, or an event that is set, ends its doze. Goroutines that overflow from a ring of crumbs into the
// global queue wait for D4, too, as more than 100 of them come there at once.

#include "sched/steal.hpp"

#include "runtime/deadline_clock.hpp"
#include "sched/timing.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weft::rt {

namespace {

constexpr int steal_rounds = 4;
constexpr int runnext_grace_spins = 80;       // pauses: 2 to 3 µs
constexpr std::uint64_t worth = 2;            // times the time of a theft
constexpr std::uint64_t worth_of_crumbs = 4;  // the same, for goroutines that were held to be crumbs
constexpr std::uint64_t lines_per_theft = 4;  // cache lines that change processors: head, tail, slots, head again
constexpr std::uint32_t slots_per_line = 8;
constexpr std::uint64_t few_us = 3;       // the time of all that was taken: less is crumbs, at a quick victim
constexpr std::uint64_t quick_ns = 250;   // for each goroutine that a quick P runs, at most
constexpr std::uint64_t pace_of_us = 20;  // the shortest time that "lately" means

bool ran_for_less(std::uint64_t ticks, std::uint64_t count, std::uint64_t theft_takes_x8, spoils before) noexcept {
#if defined(WEFT_INTERLEAVE)
  return ((ticks + count) & 1) != 0;  // time stands still in the simulation
#endif
  return ticks * 8 < count * theft_takes_x8 * (before == spoils::work ? worth : worth_of_crumbs);
}

// Counts in a theft of `count` goroutines that took `ticks`. If there are many, their slots span cache lines of their
// own. A pause of the thread is no part of a theft.
void count_in(M* m, std::uint64_t ticks, std::uint32_t count) noexcept {
  ticks = std::min(ticks, 2 * cpu_tick_rate.per_us) * lines_per_theft / (lines_per_theft + count / slots_per_line);
  m->theft_takes_x8 = m->theft_takes_x8 == 0 ? 8 * ticks : m->theft_takes_x8 - m->theft_takes_x8 / 8 + ticks;
}

// Every M that looks for work reads spoils_here, so it is written only if it changes.
void set_spoils(P* p, spoils s) noexcept {
  if (p->spoils_here.load(relaxed) != s) p->spoils_here.store(s, relaxed);
}

// Returns what a thief that takes crumbs, too, finds at the victim.
spoils found_at(P* victim) noexcept {
  const spoils before = victim->spoils_here.load(relaxed);
  if (before == spoils::work) return before;
  const std::uint64_t now = progress(victim), at_theft = victim->progress_at_theft.load(relaxed);
  victim->progress_at_theft.store(now, relaxed);
  return before == spoils::crumbs_not_judged || now == at_theft ? spoils::work : spoils::crumbs_not_judged;
}

G* steal_from(M* m, P* mine, P* victim) noexcept {
  const std::uint64_t begin = cpu_ticks();
  G* g = victim->runq.steal_into(mine->runq);
  if (!g) return nullptr;
  const std::uint64_t end = cpu_ticks();
  const std::uint32_t count = mine->runq.size() + 1;
  count_in(m, end - begin, count);
  m->last_theft = {victim, mine, end, dispatches(mine), progress(victim), count};
  const spoils found = found_at(victim);
  set_spoils(victim, found);
  if (found == spoils::work) set_spoils(mine, spoils::work);  // the work lies there now, and other thieves must see it
  mine->count.steals.add();
  return g;
}

// The goroutine in runnext of a P that runs belongs to a conversation: most likely it will run there in a moment, with
// a warm cache. Waits for a moment, and returns true if it did.
bool will_run_there(const P* p, const G* next) noexcept {
  if (p->status.load(relaxed) != p_status::running) return false;
  const std::uint64_t before = dispatches(p);
  for (int i = 0; i < runnext_grace_spins; ++i) cpu_relax();
  return dispatches(p) != before || p->runq.peek_next() != next;
}

G* steal_runnext(P* mine, P* victim) noexcept {
  G* next = victim->runq.peek_next();
  if (!next || will_run_there(victim, next)) return nullptr;
  G* g = victim->runq.steal_next(next);
  if (g) mine->count.steals.add();
  return g;
}

// True if p's goroutines are short, judging by what it ran lately.
bool is_quick(P* p) noexcept {
#if defined(WEFT_INTERLEAVE)
  return (dispatches(p) & 1) != 0;  // time stands still in the simulation
#endif
  const std::uint64_t now = cpu_ticks(), then = p->pace.at.load(relaxed);
  if (now - then < pace_of_us * cpu_tick_rate.per_us) return p->pace.quick.load(relaxed);
  const std::uint64_t done = dispatches(p), ran = done - p->pace.dispatches.load(relaxed);
  const bool quick = now - then < ran * quick_ns * cpu_tick_rate.per_us / 1000;
  p->pace.at.store(now, relaxed);
  p->pace.dispatches.store(done, relaxed);
  p->pace.quick.store(quick, relaxed);
  return quick;
}

}  // namespace

void hold_all_to_be(spoils s) noexcept {
  const std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!sched.idle_mask.has(i)) set_spoils(sched.all_ps[i].load(acquire), s);
  }
}

bool serves_itself(P* p) noexcept {
  if (!p->runq.ring_empty()) return p->spoils_here.load(relaxed) != spoils::work && is_quick(p);
  const G* next = p->runq.peek_next();
  return !next || will_run_there(p, next);
}

void judge_last_theft(M* m, const P* mine) noexcept {
  const theft t = std::exchange(m->last_theft, {});
  if (!t.from || t.to != mine) return;
  const std::uint64_t ran = std::min<std::uint64_t>(t.count, dispatches(mine) - t.dispatches);
  if (ran == 0) return;
  const spoils before = t.from->spoils_here.load(relaxed);
  const bool moves = progress(t.from) != t.progress;  // else something long runs there
  const std::uint64_t ticks = cpu_ticks() - t.at;
  const bool less = ran_for_less(ticks, ran, m->theft_takes_x8, before) ||
                    (ticks < few_us * cpu_tick_rate.per_us && is_quick(t.from));
  set_spoils(t.from, less && moves ? spoils::crumbs : spoils::work);
}

// Makes four rounds over all Ps in random order: takes half a ring, in the last round also timers and runnext.
steal_result steal_work(M* m, P* mine, thief_takes what, nanos* now) {
  std::uint32_t n = sched.procs.load(relaxed);
  for (int round = 0; round < steal_rounds; ++round) {
    bool last = round == steal_rounds - 1;
    std::uint32_t at = m->random.below(n);
    std::uint32_t stride = m->random.below(n) + 1;
    while (std::gcd(stride, n) != 1) ++stride;
    for (std::uint32_t i = 0; i < n; ++i, at = (at + stride) % n) {
      if (sched.world_stopping.load(relaxed) || sched.shutting_down.load(relaxed)) return {};
      P* victim = sched.all_ps[at].load(acquire);
      if (victim == mine) continue;
      if (last && sched.timer_mask.has(at)) {
        bool ran = false;
        // Nobody else cleans out the stopped timers of a P that idles.
        check_timers(victim, mine, sched.idle_mask.has(at), now, &ran);
        if (ran) {
          // The timers' functions made goroutines ready here; a thief may have come by already.
          bool inherit;
          return {.g = mine->runq.get(&inherit), .ran_timers = true};
        }
      }
      if (sched.idle_mask.has(at)) continue;
      if (what == thief_takes::crumbs_too || victim->spoils_here.load(relaxed) == spoils::work) {
        if (G* g = steal_from(m, mine, victim)) return {.g = g};
      }
      if (last) {
        if (G* g = steal_runnext(mine, victim)) return {.g = g, .was_next = true};
      }
    }
  }
  return {};
}

}  // namespace weft::rt
