// What an M does that has promised to do all the work, and what becomes of the promise (sched/burst.cpp). Whether a
// burst is short is a matter of time, so each case is tried until it is.
//
// Kills these mutants (tests/mutants): promise-*.

#include "sched/burst.hpp"
#include "sched/enter.hpp"
#include "tests/sched/helpers.hpp"
#include "tests/support/catch.hpp"

#include <functional>

using namespace weft::test;

namespace {

// Runs two goroutines that one wake-up for a timer makes ready, as if enough short bursts had gone before. Returns
// false if nothing was promised.
bool burst_of_two(const std::function<void()>& first, const std::function<void()>& second,
                  clock::time_point both = clock::now() + 3ms) {
  std::atomic<bool> promised{false};
  std::atomic<int> begun{0};
  auto one = [&] {
    weft::sleep_until(both);
    if (begun++ == 0) {
      promised = rt::sched.promiser.load(rt::seq_cst) == rt::this_m();
      first();
    } else {
      second();
    }
  };
  auto a = weft::spawn(one), b = weft::spawn(one);
  rt::sched.short_bursts_before.store(rt::short_bursts_at_first, rt::relaxed);
  rt::sched.short_bursts.store(rt::short_bursts_at_first, rt::relaxed);
  a.join();
  b.join();
  return promised;
}

bool some_time(const std::function<bool()>& happens) {
  for (int i = 0; i < 300; ++i) {
    if (happens()) return true;
  }
  return false;
}

bool nobody_spins() {
  return stay_until([] { return rt::sched.spinning.load(rt::seq_cst) == 0 && !rt::sched.promiser.load(rt::seq_cst); });
}

}  // namespace

TEST_CASE("promise: kept without anybody's help") {
  weft::run(
      [] {
        const bool kept = some_time([] {
          if (!burst_of_two([] {}, [] {})) return false;
          weft::sleep(a_moment);
          // A promise that is taken over, or an M that is late, sets this number back to 0.
          return rt::sched.short_bursts.load(rt::relaxed) > rt::short_bursts_at_first;
        });
        CHECK(kept);
        weft::no_preemption alone;
        CHECK(nobody_spins());
      },
      {.procs = 2});
}

TEST_CASE("promise: while its M computes, another one runs what is ready") {
  weft::run(
      [] {
        for (int i = 0; i < 5; ++i) {
          std::atomic<bool> ran{false};
          bool helped = true;
          CHECK(some_time([&] {
            ran = false;
            return burst_of_two(
                [&] {
                  weft::no_preemption alone;
                  helped = helped && stay_until(ran);
                },
                [&] { ran = true; });
          }));
          CHECK(helped);
          CHECK(rt::sched.short_bursts_before > rt::short_bursts_at_first);
        }
        weft::no_preemption alone;
        CHECK(nobody_spins());
      },
      {.procs = 2});
}

TEST_CASE("promise: while its M computes, another one sleeps for the next timer and for descriptors") {
  weft::run(
      [] {
        CHECK(some_time([] {
          auto later = weft::after_func(30ms, [] {});
          bool polled = false;
          bool promised = burst_of_two(
              [&] {
                weft::no_preemption alone;
                polled = stay_until([] { return rt::sched.last_poll.load(rt::seq_cst) == 0; }, 25ms);
              },
              [] {});
          return promised && polled;
        }));
      },
      {.procs = 2});
}

TEST_CASE("promise: none is made after a burst that was long") {
  weft::run(
      [] {
        CHECK(some_time([] {
          weft::sleep(a_moment);
          const bool after_short_ones = rt::sched.short_bursts.exchange(rt::short_bursts_at_first) > 0;
          const auto until = clock::now() + 1ms;
          while (clock::now() < until) {}
          weft::sleep(a_moment);
          return after_short_ones && rt::sched.short_bursts == 0;
        }));
      },
      {.procs = 2});
}

TEST_CASE("promise: none is made while somebody wants to be on time for a timer") {
  weft::run(
      [] {
        constexpr int rounds = 50;
        int promises = 0;
        for (int i = 0; i < rounds; ++i) {
          const auto both = clock::now() + 3ms, soon = both + 100us;
          auto punctual = weft::spawn([=] { weft::sleep_until(soon); });
          std::atomic<bool> in_time{false};
          const bool promised = burst_of_two([&] { in_time = clock::now() < soon; }, [] {}, both);
          promises += promised && in_time;
          punctual.join();
        }
        CHECK(promises < rounds / 2);  // if the process stands still, maybe none of them sleeps yet
      },
      {.procs = 2});
}

TEST_CASE("promise: none is made while others have Ps") {
  weft::run(
      [] {
        neighbour other;
        for (int i = 0; i < 50; ++i) CHECK_FALSE(burst_of_two([] {}, [] {}));
      },
      {.procs = 3});
}

// The goroutine that runs first locks its thread and waits, so the M that has promised would sleep with the promise.
TEST_CASE("promise: nobody sleeps with one") {
  weft::run(
      [] {
        int promises = 0, kept_asleep = 0;
        for (int i = 0; i < 50; ++i) {
          rt::M* sleeps = nullptr;
          promises += burst_of_two(
              [&] {
                weft::lock_os_thread();
                sleeps = rt::this_m();
                weft::sleep(1ms);
                weft::unlock_os_thread();
              },
              [&] { kept_asleep += sleeps && rt::sched.promiser == sleeps; });
        }
        CHECK(2 * kept_asleep <= promises);
      },
      {.procs = 2});
}

// The M that has promised blocks, and sysmon takes its P.
TEST_CASE("promise: whose M has lost its P ends in time") {
  weft::run(
      [] {
        CHECK(some_time(
            [] { return burst_of_two([] { weft::blocking([] { std::this_thread::sleep_for(5ms); }); }, [] {}); }));
        weft::no_preemption alone;
        CHECK(nobody_spins());
      },
      {.procs = 2});
}

// The promise of an M that the last run() has left behind.
TEST_CASE("promise: it does not outlive the run()") {
  for (int i = 0; i < 3; ++i) {
    weft::run(
        [] {
          static rt::M gone;
          rt::sched.spinning.fetch_add(1);
          rt::sched.promise_due = rt::forever;
          rt::sched.promiser = &gone;
        },
        {.procs = 2});
    weft::run(
        [] {
          weft::no_preemption alone;
          CHECK(nobody_spins());
        },
        {.procs = 2});
  }
}
