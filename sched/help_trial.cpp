// "Trial": does a helper help? Where goroutines run for a fraction of a microsecond, or only wake each other, one P is
// often done sooner without help: each one that is taken brings its cache lines along, which are wanted back at once,
// and whoever was alone (alone.cpp) is not any more. What was taken tells little of that (steal.cpp): it may have been
// worth its theft, while the two Ps together do less than one did.
//
// So it is tried out. An M that dozes, is called, and dozes again, several times in a short while, so that one P does
// all the rest, notes how much all of them got done in that while. Then it stays away for as long, and compares:
//
//     helps       comes when it is called, and when it has dozed for long enough (find.cpp)
//     settles     stays away, but what the other P does is not counted yet: it may become alone
//     without     stays away, and counts
//     of_no_use   stays away, for some time, as long as the other P goes on at that rate
//
// If it made less difference than `gain`, its help is of no use. All this holds only while that other P runs so many
// goroutines that each has a fraction of a microsecond, and no third one runs: if a goroutine begins to compute, those
// behind it wait for the next look, for one doze, or two.
//
// "Staying away" is a longer doze, and protocols know nothing of it (find.cpp). Who wakes the dozer at once for work,
// does so for what is no crumbs: so what is ready with the other P is declared to be crumbs. A poller that has somebody
// to run, a foreign thread or a newcomer rouse it as ever.

#include "sched/help_trial.hpp"

#include "runtime/deadline_clock.hpp"
#include "sched/scheduler.hpp"

namespace weft::rt {

namespace {

constexpr std::uint64_t window_us = 200;        // what is compared
constexpr std::uint64_t too_long_us = 2'000;    // for a window with so few dozes
constexpr std::uint64_t verdict_us = 20'000;    // how long it holds
constexpr std::uint32_t often = 3;              // dozes in a window
constexpr std::uint64_t dispatches_per_us = 4;  // or more, by the other P
constexpr double gain = 1.125;                  // with help, for without
constexpr double same_rate = 0.75;
constexpr std::uint32_t slow_looks = 2;  // one may be of a thread that had lost its processor

std::uint64_t ticks_of(std::uint64_t us) noexcept { return us * cpu_tick_rate.per_us; }

bool is_quick(const work_done& from, const work_done& to) noexcept {
  return to.by_one_p && to.dispatches - from.dispatches > (to.at - from.at) * dispatches_per_us / cpu_tick_rate.per_us;
}

double rate(const work_done& from, const work_done& to) noexcept {
  const std::uint64_t done = to.dispatches - from.dispatches + (to.readied - from.readied);
  return static_cast<double>(done) / static_cast<double>(to.at - from.at + 1);
}

}  // namespace

work_done work_done_now() noexcept {
  work_done all;
  all.at = cpu_ticks();
  const std::uint32_t n = sched.procs.load(acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    const P* p = sched.all_ps[i].load(acquire);
    all.dispatches += dispatches(p);
    all.readied += p->runq.tail();
  }
  all.by_one_p = sched.idle_ps.load(relaxed) + 1 == n;
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
  if (is_away()) {  // it was roused: that does not count
    begin(phase::settles, now);
    return true;
  }
  ++dozes_;
  const std::uint64_t since = now.at - began_.at;
  if (since > ticks_of(too_long_us)) begin(phase::helps, now);
  if (since < ticks_of(window_us) || dozes_ < often || now.at < until_) return false;
  if (!is_quick(began_, now)) {
    begin(phase::helps, now);
    return false;
  }
  with_ = rate(began_, now);
  begin(phase::settles, now);
  return true;
}

bool help_trial::stays_away(const work_done& now) noexcept {
#if defined(WEFT_INTERLEAVE)
  return is_away() && (now.dispatches & 2) != 0;
#endif
  if (!is_away()) return false;
  if (!is_quick(began_, now)) {
    begin(phase::helps, now);
    return false;
  }
  switch (phase_) {
    case phase::settles: begin(phase::without, now); break;
    case phase::without:
      if (now.at - began_.at < ticks_of(window_us)) break;
      without_ = rate(began_, now);
      until_ = now.at + ticks_of(verdict_us);
      begin(with_ < without_ * gain ? phase::of_no_use : phase::helps, now);
      break;
    default:
      slow_ = rate(began_, now) < without_ * same_rate ? slow_ + 1 : 0;
      if (now.at >= until_ || slow_ == slow_looks) {
        until_ = now.at;
        begin(phase::helps, now);
      }
      began_ = now;
  }
  return is_away();
}

}  // namespace weft::rt
