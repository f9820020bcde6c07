// Dozing. Two goroutines that talk to each other on one P make work ready a million times a second, and the P itself
// will run that work in a moment. If each M that came to help and found nothing went to sleep, the next such wake-up
// would wake a thread again, and so on: half of the time would go into waking and sleeping. So an M that was wanted,
// spun, and found nothing sleeps for a bounded time and then looks again. It counts as spinning meanwhile, so nobody
// wakes another M. It goes on like this as long as help was wanted during its last doze.
//
//     a thread that makes work ready                the dozer, without a P
//     A1  append it                                 D1  dozer = itself (seq_cst)
//     A2  spinning != 0: more than runnext?         D2  look at every queue, then sleep `doze_time`
//         then swap dozer for null and wake it          again and again, while all serve themselves (steal.cpp)
//                                                   D3  swap dozer for null; taken: wait for the wake-up
//                                                   D4  look at every queue; at last S2, S3
//
//     Work beyond runnext is not delayed: if A2 reads no dozer, D1 comes later and D2 sees A1. A goroutine that lies in
//     runnext while its P computes waits for the end of a sleep and D4, `doze_time`. So do crumbs (steal.cpp), or twice
//     as long if their P has just turned from short goroutines to a long one. Nothing is lost, as S3 comes in the end.
//
// If a timer is pending, or somebody waits for a descriptor, and no M sleeps in the poller, then this one does so, and
// does not doze. But beside an M that serves a connection it would take the next message from that one, which then
// wakes it for its own next goroutine, and so on. So it dozes if no timer is pending and another_polls. That is a guess
// (hence relaxed): if the other M begins to compute, descriptors wait for the end of the doze, S3 and P1.
//
// Where help was of no use lately, the dozer stays away (help_trial.cpp). The goroutines in rings are crumbs then.
// Those that lay in the global queue when an M last gave its P up are treated alike: they wait for D4, which comes
// after the first sleep at whose end the P that runs is no longer quick.

#include "sched/doze.hpp"

#include "sched/alone.hpp"
#include "sched/find.hpp"
#include "sched/newcomers.hpp"
#include "sched/proc.hpp"
#include "sched/runqueues.hpp"
#include "sched/steal.hpp"

namespace weft::rt {

namespace {

constexpr nanos doze_time = 100 * microsecond;

// True if an M other than m, which had nothing else to do, has looked into the poller a moment ago, and found
// something. Most likely it will be done with that in a moment, and look again.
bool another_polls(const M* m) noexcept {
  return sched.spare_looker.load(relaxed) != m && nanotime() - sched.spare_look.load(relaxed) < look_every;
}

// True at most once for each time that help was wanted.
bool may_doze(const M* m) noexcept {
  if (!sched.help_wanted.exchange(false, relaxed)) return false;
  if (sched.shutting_down.load(relaxed) || sched.world_stopping.load(relaxed)) return false;
  if (sched.idle_ps.load(relaxed) >= sched.procs.load(relaxed)) return false;
  return another_polls(m) ? !timer_wants_poller(forever) : !poller_is_wanted(forever);
}

bool all_serve_themselves() noexcept {
  if (sched.global_size.load(relaxed) != 0 || newcomers_may_begin()) return false;
  const std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!sched.idle_mask.has(i) && !serves_itself(sched.all_ps[i].load(acquire))) return false;
  }
  return true;
}

// If m stays away, what is ready is declared to be crumbs. This comes before D1, so that no thread rouses the dozer for
// goroutines that are crumbs by now.
bool begins_to_stay_away(M* m) noexcept {
  if (sched.dozer.load(relaxed)) return false;  // there can be only one
  const bool away = m->help.begin_doze(work_done_now());
  if (away) hold_all_to_be(spoils::crumbs);
  return away;
}

bool stays_away(M* m) noexcept {
  if (!m->help.is_away()) return false;
  if (m->help.stays_away(work_done_now())) return true;
  hold_all_to_be(spoils::work);  // the Ms that come with it must not take it for crumbs
  return false;
}

}  // namespace

bool doze(M* m) noexcept {
  if (m->pins != 0) return false;  // goroutines that are pinned to m would not end its sleep
  while (may_doze(m)) {
    const bool away = begins_to_stay_away(m);
    M* nobody = nullptr;
    if (!sched.dozer.compare_exchange_strong(nobody, m, seq_cst, relaxed)) return false;  // D1
    barrier_to_who_is_alone();                                                            // S2b
    if (away && m->help.is_of_all()) sched.all_leave_to.store(m, relaxed);
    if (look_beyond_next(away ? sched.left_in_global.load(relaxed) : 0) != queued::work) {  // D2
      while (!m->parked.sleep_until(nanotime() + doze_time) && (stays_away(m) || all_serve_themselves()) &&
             may_doze(m)) {}
    }
    if (sched.all_leave_to.load(relaxed) == m) sched.all_leave_to.store(nullptr, relaxed);
    M* me = m;
    if (!sched.dozer.compare_exchange_strong(me, nullptr, seq_cst, relaxed)) m->parked.sleep();  // D3
    m->parked.clear();
    if (look_at_queues() != queued::nothing) {  // D4
      if (P* p = some_idle_p()) {
        acquirep(m, p);
        return true;
      }
    }
  }
  return false;
}

}  // namespace weft::rt
