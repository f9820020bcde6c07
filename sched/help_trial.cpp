// "Trial": does a helper help? Where goroutines run for a fraction of a microsecond, or only talk to each other, one P
// is often done sooner without help: each one that is taken brings its cache lines along, which are wanted back at
// once, and whoever was alone (alone.cpp) is not any more. What was taken tells little of that (steal.cpp): it may have
// been worth its theft, while the two Ps together do less than one did.
//
// So it is tried out. There are two occasions. An M that dozes, is called, and dozes again, several times in a short
// while, in which one P does all the rest. Or one of two that run all the time, and meet at channels again and again
// (collisions.hpp): it gives its goroutines to the global queue, and its P up (find.cpp). Either has noted how much all
// of them got done in that while. Then it stays away for as long, and compares:
//
//     helps       comes when it is called, and when it has dozed for long enough (find.cpp)
//     settles     stays away, but what the other P does is not counted yet: it may become alone
//     without     stays away, and counts
//     of_no_use   stays away, for some time, as long as the other P goes on at that rate
//
// If it made less difference than `gain`, its help is of no use. All this holds only while that other P runs so many
// goroutines, or passes so many values from one to the next, that each has a fraction of a microsecond, and no third P
// runs: if a goroutine begins to compute, those behind it wait for the next look, for one doze, or two.
//
// "Staying away" is a longer doze, and protocols know nothing of it (find.cpp). Who wakes the dozer at once for work,
// does so for what is no crumbs: so what is ready with the other P is declared to be crumbs. A poller that has somebody
// to run, a foreign thread or a newcomer rouse it as ever.

#include "sched/help_trial.hpp"

#include "runtime/deadline_clock.hpp"
#include "sched/scheduler.hpp"

#include <algorithm>

namespace weft::rt {

namespace {

constexpr std::uint64_t window_us = 200;         // what is compared
constexpr std::uint64_t too_long_us = 2'000;     // for a window with so few dozes, or to compare with afterwards
constexpr std::uint64_t verdict_us = 20'000;     // how long it holds, at least
constexpr std::uint64_t longest_verdict = 16;    // times that
constexpr std::uint32_t often = 3;               // dozes in a window
constexpr std::uint64_t us_for_a_collision = 4;  // or less, where there are many
constexpr std::uint64_t done_per_us = 4;         // or more, by each P
constexpr std::uint64_t us_for_a_goroutine = 5;  // or less, at a time
constexpr double gain = 1.125;                   // with help, for without
constexpr double same_rate = 0.75;
constexpr std::uint32_t slow_looks = 2;  // one may be of a thread that had lost its processor

std::uint64_t ticks_of(std::uint64_t us) noexcept { return us * cpu_tick_rate.per_us; }

// What an M counts is in no sum while it has no P.
std::uint64_t since(std::uint64_t from, std::uint64_t to) noexcept { return to > from ? to - from : 0; }

struct difference {
  difference(const work_done& from, const work_done& to) noexcept
      : ticks(to.at - from.at),
        ran(to.dispatches - from.dispatches),
        moved(ran + since(from.values, to.values)),
        all(moved + (to.readied - from.readied)) {}

  // Each of so many Ps.
  bool is_quick(std::uint32_t ps) const noexcept {
    return ran * ticks_of(us_for_a_goroutine) > ps * ticks && moved * cpu_tick_rate.per_us > ps * ticks * done_per_us;
  }
  double rate() const noexcept { return static_cast<double>(all) / static_cast<double>(ticks + 1); }

  std::uint64_t ticks, ran, moved, all;
};

}  // namespace

work_done work_done_now() noexcept {
  work_done all;
  all.at = cpu_ticks();
  const std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    const P* p = sched.all_ps[i].load(acquire);
    all.dispatches += dispatches(p);
    all.readied += p->runq.tail();
    if (const M* m = p->m.load(acquire)) {
      all.values += m->values.load(relaxed);
      all.collisions += m->collisions.load(relaxed);
    }
  }
  all.busy_ps = n - sched.idle_ps.load(relaxed);
  return all;
}

void help_trial::begin(phase p, const work_done& now) noexcept {
  phase_ = p;
  dozes_ = slow_ = 0;
  began_ = now;
}

bool help_trial::begin_doze(const work_done& now) noexcept {
#if defined(WEFT_INTERLEAVE)
  begin((now.dispatches & 1) != 0 ? phase::settles : phase::helps, now);  // time stands still there
  return is_away();
#endif
  if (phase_ == phase::of_no_use) {
    began_ = now;
    return true;
  }
  const std::uint64_t ticks = now.at - began_.at;
  if (is_away()) {  // it was roused: that does not count
    begin(ticks < ticks_of(too_long_us) ? phase::settles : phase::helps, now);
    return is_away();
  }
  ++dozes_;
  if (ticks > ticks_of(too_long_us)) begin(phase::helps, now);
  if (ticks < ticks_of(window_us) || dozes_ < often || now.at < until_) return false;
  const difference d(began_, now);
  const bool tries = now.busy_ps == 1 && d.is_quick(1);
  if (tries) with_ = d.rate();
  begin(tries ? phase::settles : phase::helps, now);
  return tries;
}

bool help_trial::leaves(const work_done& now) noexcept {
#if defined(WEFT_INTERLEAVE)
  return now.busy_ps > 1 && (now.dispatches & 1) != 0;
#endif
  if (now.at < until_) return false;
  const difference d(collided_, now);
  if (d.ticks < ticks_of(window_us)) return false;
  const bool often_enough = since(collided_.collisions, now.collisions) * ticks_of(us_for_a_collision) > d.ticks;
  const bool tries = d.ticks < ticks_of(too_long_us) && often_enough && now.busy_ps == 2 && d.is_quick(2);
  collided_ = now;
  if (!tries) return false;
  with_ = d.rate();
  begin(phase::settles, now);
  return true;
}

bool help_trial::stays_away(const work_done& now) noexcept {
#if defined(WEFT_INTERLEAVE)
  return is_away() && (now.dispatches & 2) != 0;
#endif
  if (!is_away()) return false;
  const difference d(began_, now);
  if (now.busy_ps != 1 || !d.is_quick(1)) {
    begin(phase::helps, now);
    return false;
  }
  switch (phase_) {
    case phase::settles: begin(phase::without, now); break;
    case phase::without:
      if (d.ticks >= ticks_of(window_us)) judge(now);
      break;
    default:
      slow_ = d.rate() < without_ * same_rate ? slow_ + 1 : 0;
      if (now.at >= until_ || slow_ == slow_looks) {
        until_ = now.at;
        begin(phase::helps, now);
      }
      began_ = now;
  }
  return is_away();
}

void help_trial::judge(const work_done& now) noexcept {
  without_ = difference(began_, now).rate();
  const bool helps = with_ >= without_ * gain;
  // Where it helps, it shall not find that out again and again.
  holds_ = helps ? std::clamp(2 * holds_, ticks_of(verdict_us), longest_verdict * ticks_of(verdict_us)) : 0;
  until_ = now.at + (helps ? holds_ : ticks_of(verdict_us));
  begin(helps ? phase::helps : phase::of_no_use, now);
}

}  // namespace weft::rt
