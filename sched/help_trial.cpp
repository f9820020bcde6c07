// "Trial": does a helper help? Where goroutines run for a fraction of a microsecond, or only talk to each other, one P
// is often done sooner without help. Each goroutine that is stolen brings its cache lines along, and the first P wants
// them back at once; and a P that was alone (alone.cpp) no longer is. What was stolen tells little of that (steal.cpp):
// it may have been worth its theft, while the two Ps together do less than one did.
//
// So it is tried out. There are two occasions. One: an M dozes, is called, and dozes again, several times in a short
// while, in which one P does all the rest. The other: two or more Ms run all the time, and meet at channels again and
// again (collisions.hpp). One of them gives its goroutines to the global queue, and gives its P up (find.cpp). If there
// were more than two, all others but one do so when they meet next: of sixteen Ps that are in each other's way, one is
// not missed, and if they are not, one in sixteen is not missed either. In both cases the M has noted how much all Ps
// got done in that while. Then it stays away for as long, and compares:
//
//     helps       comes when it is called, and when it has dozed for long enough (doze.cpp)
//     settles     stays away, but what the other P does is not counted yet: the others leave, and it may become alone
//     without     stays away, and counts
//     of_no_use   stays away, for some time, as long as the other P goes on at that rate
//
// If its help made less difference than `gain`, it is of no use. All this holds only while the other P runs so many
// goroutines, or passes so many values from one to the next, that each takes a fraction of a microsecond, and no other
// P runs. If a goroutine begins to compute, those behind it wait for the next look, for one doze or two. A trial of all
// is followed by no other for some time, whatever it leads to.
//
// "Staying away" is a longer doze, and the protocols do not know of it (doze.cpp). A thread wakes the dozer at once
// only for work that is not crumbs. So what is ready at the other P is declared to be crumbs. A poller that has a
// goroutine to run, a foreign thread, or a newcomer rouses the dozer as ever.

#include "sched/help_trial.hpp"

#include "runtime/deadline_clock.hpp"
#include "sched/scheduler.hpp"

#include <algorithm>

namespace weft::rt {

namespace {

constexpr std::uint64_t window_us = 200;         // the time that is compared
constexpr std::uint64_t shortest_us = 50;        // the shortest time that tells whether a P is quick
constexpr std::uint64_t too_long_us = 2'000;     // for a window with so few dozes, or for a comparison afterwards
constexpr std::uint64_t verdict_us = 20'000;     // how long a verdict holds; longer if it says that help helps
constexpr std::uint64_t longest_verdict = 16;    // times verdict_us
constexpr std::uint32_t often = 3;               // dozes in a window
constexpr std::uint64_t us_for_a_collision = 4;  // or less from one to the next: the Ps collide often
constexpr std::uint64_t done_per_us = 4;         // or more, by each P that is quick, or by many together
constexpr std::uint64_t us_for_a_goroutine = 5;  // or less, for each goroutine that a quick P runs
constexpr double gain = 1.125;                   // so much is done with help, for 1 without, if it helps
constexpr double gain_of_all = 1;                // the P that is left may do most of it, and not be in the others' way
constexpr double same_rate = 0.75;
constexpr std::uint32_t early_looks = 2;  // so many looks may come before all others have left
constexpr std::uint32_t slow_looks = 2;   // one look may be at a thread that had lost its processor

std::uint64_t ticks_of(std::uint64_t us) noexcept { return us * cpu_tick_rate.per_us; }

// Not less than 0: set_procs may have taken a P out of the sum.
std::uint64_t since(std::uint64_t from, std::uint64_t to) noexcept { return to > from ? to - from : 0; }

}  // namespace

struct help_trial::difference {
  difference(const work_done& from, const work_done& to) noexcept
      : ticks(to.at - from.at),
        ran(since(from.dispatches, to.dispatches)),
        moved(ran + since(from.values, to.values)),
        all(moved + std::uint32_t(to.readied - from.readied)) {}

  // True if each of `ps` Ps is quick.
  bool is_quick(std::uint32_t ps) const noexcept {
    return ran * ticks_of(us_for_a_goroutine) > ps * ticks && moved * cpu_tick_rate.per_us > ps * ticks * done_per_us;
  }
  double rate() const noexcept { return static_cast<double>(all) / static_cast<double>(ticks + 1); }

  std::uint64_t ticks, ran, moved, all;
};

work_done work_done_now() noexcept {
  work_done all;
  all.at = cpu_ticks();
  const std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    const P* p = sched.all_ps[i].load(acquire);
    all.dispatches += dispatches(p);
    all.readied += p->runq.tail();
    all.values += p->values.get();
    all.collisions += p->collisions.get();
  }
  all.busy_ps = n - sched.idle_ps.load(relaxed);
  return all;
}

void help_trial::begin(phase p, const work_done& now) noexcept {
  phase_ = p;
  dozes_ = slow_ = early_ = 0;
  began_ = now;
}

void help_trial::begin_trial(double with, bool of_all, const work_done& now) noexcept {
  with_ = with;
  of_all_ = of_all;
  tried_at_ = now.at;
  begin(phase::settles, now);
}

bool help_trial::begin_doze(const work_done& now) noexcept {
#if defined(WEFT_INTERLEAVE)
  of_all_ &= is_away();
  const bool away = (now.busy_ps == 1 || of_all_) && (now.dispatches & 1) != 0;  // time stands still in the simulation
  begin(away ? phase::settles : phase::helps, now);
  return away;
#endif
  const difference d(began_, now);
  const bool one_is_quick = now.busy_ps == 1 && d.is_quick(1);
  if (is_away()) {
    goes_on_after(d, now);
    return is_away();
  }
  ++dozes_;
  if (d.ticks > ticks_of(too_long_us)) begin(phase::helps, now);
  if (d.ticks < ticks_of(window_us) || dozes_ < often || now.at < until_) return false;
  if (one_is_quick) {
    begin_trial(d.rate(), false, now);
  } else {
    begin(phase::helps, now);
  }
  return one_is_quick;
}

bool help_trial::others_still_leave(const work_done& now) const noexcept {
  return of_all_ && phase_ == phase::settles && now.busy_ps > 1 && early_ < early_looks;
}

// Called when an M that stays away begins to doze: it was roused, or has just left its P.
void help_trial::goes_on_after(const difference& d, const work_done& now) noexcept {
  const bool can_be_seen = d.ticks >= ticks_of(shortest_us);
  bool comes = (now.busy_ps != 1 && !others_still_leave(now)) || (can_be_seen && !d.is_quick(1));
  if (phase_ == phase::of_no_use) {
    comes |= now.at >= until_;
    if (can_be_seen) began_ = now;
  } else if (now.at - tried_at_ > ticks_of(too_long_us)) {
    until_ = now.at + ticks_of(verdict_us);
    comes = true;
  } else {
    begin(phase::settles, now);
  }
  if (comes) begin(phase::helps, now);
}

bool help_trial::may_leave(std::uint64_t at) const noexcept {
#if defined(WEFT_INTERLEAVE)
  return true;
#endif
  return at - collided_.at >= ticks_of(window_us) && (at >= until_ || phase_ == phase::of_no_use);
}

bool help_trial::leaves(const work_done& now) noexcept {
#if defined(WEFT_INTERLEAVE)
  if (now.busy_ps < 2 || (now.dispatches & 1) == 0) return false;
  begin_trial(0, now.busy_ps > 2, now);
  return true;
#endif
  const difference d(collided_, now);
  const bool collide = since(collided_.collisions, now.collisions) * ticks_of(us_for_a_collision) > d.ticks;
  collided_ = now;
  const bool all = now.busy_ps > 2;
  if (d.ticks > ticks_of(too_long_us) || !collide || now.busy_ps < 2 || !d.is_quick(all ? 1 : 2)) return false;
  if (all) {
    if (now.at < sched.next_trial_of_all.load(relaxed)) return false;
    sched.next_trial_of_all.store(now.at + ticks_of(verdict_us), relaxed);
  }
  if (!all && phase_ == phase::of_no_use && now.at < until_) {  // the M was roused, and is still of no use
    began_ = now;
  } else {
    begin_trial(d.rate(), all, now);
  }
  return true;
}

bool help_trial::stays_away(const work_done& now) noexcept {
#if defined(WEFT_INTERLEAVE)
  return (now.busy_ps == 1 || of_all_) && (now.dispatches & 2) != 0;
#endif
  const difference d(began_, now);
  if (others_still_leave(now)) {
    ++early_;
    return true;
  }
  if (now.busy_ps != 1 || !d.is_quick(1)) {
    if (of_all_ && phase_ != phase::of_no_use) {
      comes_for_long(now);
    } else {
      begin(phase::helps, now);
    }
    return false;
  }
  switch (phase_) {
    case phase::settles: begin(phase::without, now); break;
    case phase::without:
      if (d.ticks >= ticks_of(window_us)) judge(now);
      break;
    default:
      began_ = now;
      slow_ = d.rate() < without_ * same_rate ? slow_ + 1 : 0;
      if (now.at >= until_ || slow_ == slow_looks) {
        until_ = now.at;
        begin(phase::helps, now);
      }
  }
  return is_away();
}

void help_trial::judge(const work_done& now) noexcept {
  without_ = difference(began_, now).rate();
  if (with_ >= without_ * (of_all_ ? gain_of_all : gain)) return comes_for_long(now);
  holds_ = 0;
  until_ = now.at + ticks_of(verdict_us);
  begin(phase::of_no_use, now);
}

// Where help helps, the M must not find that out again and again.
void help_trial::comes_for_long(const work_done& now) noexcept {
  holds_ = std::clamp(2 * holds_, ticks_of(verdict_us), longest_verdict * ticks_of(verdict_us));
  until_ = now.at + holds_;
  if (of_all_) sched.next_trial_of_all.store(until_, relaxed);
  begin(phase::helps, now);
}

}  // namespace weft::rt
