// Stealing (steal.cpp): what thieves take for crumbs, and that crumbs are not forgotten.
//
// Kills these mutants (tests/mutants): crumbs-*.

#include "sched/steal.hpp"

#include "netpoll/netpoll.hpp"
#include "sched/enter.hpp"
#include "sched/runqueues.hpp"
#include "tests/sched/helpers.hpp"
#include "tests/support/catch.hpp"

#include <weft/net.hpp>

using namespace weft::test;

namespace {

rt::P* p_of(std::uint32_t i) { return rt::sched.all_ps[i].load(rt::acquire); }

// Makes every P's ring seem to hold `s`.
void all_hold(rt::spoils s) {
  for (std::uint32_t i = 0; i < rt::sched.procs.load(rt::relaxed); ++i) p_of(i)->spoils_here.store(s, rt::relaxed);
}

// A thread that declares all rings to hold crumbs, all the time.
class pessimist {
 public:
  ~pessimist() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_{[this] {
    while (!over_) all_hold(rt::spoils::crumbs);
  }};
};

// A goroutine that waits for a descriptor.
struct waits_for_io {
  weft::net::tcp_listener listener = weft::net::tcp_listener::bind("127.0.0.1:0");
  weft::task<void> goroutine = weft::spawn([this] {
    std::error_code closed;
    (void)listener.accept(closed);
  });

  ~waits_for_io() { listener.close(); }
};

// Goroutines that are made ready in the ring of the caller's P. Each computes until all of them do.
class crowd {
 public:
  explicit crowd(int n) : n_(n) {
    for (int i = 0; i < n; ++i) {
      goroutines_.go([this] {
        start_.wait();
        weft::no_preemption alone;
        if (++running_ == n_) all_ = true;
        stay_until(all_);
      });
    }
    weft::sleep(a_moment);
  }
  ~crowd() { goroutines_.wait(); }
  void start() { start_.set(); }
  bool all_run() { return stay_until(all_); }

 private:
  const int n_;
  weft::event start_;
  weft::wait_group goroutines_;
  std::atomic<int> running_{0};
  std::atomic<bool> all_{false};
};

struct took {
  std::uint64_t ticks;
  std::uint32_t count = 1, ran = 1;
  bool victim_moved = true;
};

// An M, the caller's, that keeps its P and comes back from a theft from the other P. judges() says how long ago the
// theft was, in ticks.
struct thief {
  weft::no_preemption stays;
  rt::runtime_scope inside;
  rt::M* m = inside.m();
  rt::P* mine = m->p.load(rt::relaxed);
  rt::P* victim = p_of(1 - mine->id);
  std::uint64_t theft_takes;  // ticks

  explicit thief(std::uint64_t ticks) : theft_takes(ticks) {}

  rt::spoils judges(rt::spoils before, took t, const rt::P* to) {
    victim->spoils_here.store(before, rt::relaxed);
    m->theft_takes_x8 = 8 * theft_takes;
    m->last_theft = {victim,
                     to,
                     rt::cpu_ticks() - t.ticks,
                     rt::dispatches(mine) - t.ran,
                     rt::progress(victim) - (t.victim_moved ? 1 : 0),
                     t.count};
    rt::judge_last_theft(m, mine);
    CHECK_FALSE(m->last_theft.from);
    return victim->spoils_here.load(rt::relaxed);
  }
};

}  // namespace

TEST_CASE("crumbs: a thief that comes back judges by how long it had to run what it took") {
  weft::run(
      [] {
        constexpr std::uint64_t theft = 100'000'000;  // ticks: some 30 ms
        thief t(theft);
        rt::P *mine = t.mine, *victim = t.victim;
        using rt::spoils;
        CHECK(t.judges(spoils::work, {theft / 100}, mine) == spoils::crumbs);
        CHECK(t.judges(spoils::work, {3 * theft}, mine) == spoils::work);
        CHECK(t.judges(spoils::crumbs, {3 * theft}, mine) == spoils::crumbs);
        CHECK(t.judges(spoils::crumbs_not_judged, {3 * theft}, mine) == spoils::crumbs);
        CHECK(t.judges(spoils::crumbs, {5 * theft}, mine) == spoils::work);
        CHECK(t.judges(spoils::crumbs_not_judged, {5 * theft}, mine) == spoils::work);
        // Several goroutines; two, of which another thief took one meanwhile; one that made another one ready.
        CHECK(t.judges(spoils::work, {3 * theft, 2, 2}, mine) == spoils::crumbs);
        CHECK(t.judges(spoils::work, {3 * theft, 3, 3}, mine) == spoils::crumbs);
        CHECK(t.judges(spoils::work, {3 * theft, 2, 1}, mine) == spoils::work);
        CHECK(t.judges(spoils::work, {3 * theft, 1, 2}, mine) == spoils::work);
        CHECK(t.judges(spoils::work, {theft / 100, 1, 0}, mine) == spoils::work);
        CHECK(t.judges(spoils::crumbs, {5 * theft, 1, 0}, mine) == spoils::crumbs);
        // Something long runs on the victim's P.
        CHECK(t.judges(spoils::work, {theft / 100, 1, 1, false}, mine) == spoils::work);
        CHECK(t.judges(spoils::crumbs, {theft / 100, 1, 1, false}, mine) == spoils::work);
        // The thief has lost its P meanwhile.
        CHECK(t.judges(spoils::work, {theft / 100}, victim) == spoils::work);
      },
      {.procs = 2});
}

namespace {

// Sets what the last look at p, just now, has found.
void runs_quickly(rt::P* p, bool quick) {
  p->pace.at.store(rt::cpu_ticks(), rt::relaxed);
  p->pace.quick.store(quick, rt::relaxed);
}

}  // namespace

// Here a theft seems to take no time, so any time is long in comparison.
TEST_CASE("crumbs: what was soon done, where very many run") {
  weft::run(
      [] {
        thief t(0);
        rt::P* victim = t.victim;
        auto judge = [&](std::uint64_t us, bool quick) {
          runs_quickly(victim, quick);
          return t.judges(rt::spoils::work, {us * rt::cpu_tick_rate.per_us}, t.mine);
        };
        bool crumbs = false;  // unless the thread stands still meanwhile
        for (int i = 0; i < 100 && !crumbs; ++i) crumbs = judge(1, true) == rt::spoils::crumbs;
        CHECK(crumbs);
        CHECK(judge(1, false) == rt::spoils::work);
        CHECK(judge(10, true) == rt::spoils::work);
        // So many goroutines have run in the last millisecond.
        auto pace_after = [&](std::uint64_t ran) {
          victim->pace.dispatches.store(rt::dispatches(victim) - ran, rt::relaxed);
          const bool before = victim->pace.quick.load(rt::relaxed);
          const std::uint64_t at = rt::cpu_ticks() - 1000 * rt::cpu_tick_rate.per_us;
          victim->pace.at.store(at, rt::relaxed);
          for (int i = 0; i < 100 && victim->pace.at.load(rt::relaxed) == at; ++i) {  // as above
            t.judges(rt::spoils::work, {0}, t.mine);
          }
          return std::pair{before, victim->pace.quick.load(rt::relaxed)};
        };
        runs_quickly(victim, false);
        CHECK(pace_after(100'000) == std::pair{false, true});
        CHECK(pace_after(2'000) == std::pair{true, false});
      },
      {.procs = 2});
}

TEST_CASE("crumbs: a P serves them itself while it runs very many, and nothing that waits while it computes") {
  weft::run(
      [] {
        sleeper one, another;
        while (weft::runtime_stats().waiting < 2) weft::sleep(a_moment);
        rt::runtime_scope inside;
        rt::P* mine = inside.m()->p.load(rt::relaxed);
        CHECK(rt::serves_itself(mine));
        REQUIRE(one.wake());  // it is in runnext
        CHECK_FALSE(rt::serves_itself(mine));
        REQUIRE(another.wake());  // the first one is in the ring now
        all_hold(rt::spoils::crumbs);
        runs_quickly(mine, true);
        CHECK(rt::serves_itself(mine));
        runs_quickly(mine, false);
        CHECK_FALSE(rt::serves_itself(mine));
        all_hold(rt::spoils::work);
        runs_quickly(mine, true);
        CHECK_FALSE(rt::serves_itself(mine));
      },
      {.procs = 1});
}

// S3, as in wake_test.cpp, without a dozer.
TEST_CASE("crumbs: an M that has given up its P takes those that were made ready before") {
  weft::run(
      [] {
        three_times([&] {
          sleeper one, another;
          neighbour other;
          weft::no_preemption alone;
          held_scheduler held;
          all_hold(rt::spoils::crumbs);
          other.over = true;
          std::this_thread::sleep_for(a_moment);
          rt::sched.help_wanted.store(false, rt::relaxed);  // otherwise it would doze
          bool woken = one.wake() && another.wake();
          held.release();
          if (woken) CHECK(one.runs());
          return woken;
        });
      },
      {.procs = 2});
}

// An M that looks passes them by at first, and dozes.
TEST_CASE("crumbs: somebody takes them while their P computes") {
  weft::run(
      [] {
        three_times([&] {
          sleeper one, another;
          weft::sleep(a_moment);
          weft::no_preemption alone;
          all_hold(rt::spoils::crumbs);
          bool woken = one.wake() && another.wake();  // the second is in runnext, so the first is in the ring
          if (woken) CHECK(one.runs());
          return woken;
        });
      },
      {.procs = 2});
}

TEST_CASE("crumbs: what is not judged at the next theft was work, and what lies behind something long") {
  weft::run(
      [] {
        std::atomic<bool> start{false}, computes{false}, over{false};
        weft::wait_group others;
        others.go([&] {
          weft::no_preemption alone;
          stay_until(start);
          for (int i = 0; i < 10; ++i) others.go([] {});
          computes = true;
          stay_until(over);
        });
        weft::sleep(a_moment);
        weft::no_preemption alone;
        start = true;
        REQUIRE(stay_until(computes));
        {
          rt::runtime_scope inside;
          rt::M* m = inside.m();
          rt::P *mine = m->p.load(rt::relaxed), *victim = p_of(1 - mine->id);
          auto steal = [&] {
            rt::nanos now = 0;
            rt::steal_result r = rt::steal_work(m, mine, rt::thief_takes::crumbs_too, &now);
            CHECK(m->last_theft.from == victim);
            m->last_theft = {};
            if (r.g) rt::runqput(mine, r.g);
            return victim->spoils_here.load(rt::relaxed);
          };
          using rt::spoils;
          all_hold(spoils::crumbs);
          CHECK(steal() == spoils::crumbs_not_judged);
          victim->progress_at_theft.store(0, rt::relaxed);
          CHECK(steal() == spoils::work);
          CHECK(mine->spoils_here.load(rt::relaxed) == spoils::work);
          victim->spoils_here.store(spoils::crumbs, rt::relaxed);  // judged meanwhile, and nothing has moved
          CHECK(steal() == spoils::work);
        }
        over = true;
        others.wait();
      },
      {.procs = 2});
}

// resetspinning. Three goroutines are in one ring, and each computes until all of them run.
TEST_CASE("crumbs: who takes some wakes somebody for the others") {
  weft::run(
      [] {
        for (int i = 0; i < 3; ++i) {
          crowd c(3);
          weft::no_preemption alone;
          pessimist all_the_time;
          c.start();
          CHECK(c.all_run());
        }
      },
      {.procs = 4});
}

// S3 of an M that comes from the poller, where an M has to sleep for goroutines that wait for descriptors.
TEST_CASE("crumbs: who has to sleep in the poller wakes somebody for them") {
  weft::run(
      [] {
        waits_for_io waits;
        three_times([&] {
          sleeper one, another;
          weft::sleep(a_moment);
          weft::no_preemption alone;
          CHECK(stay_until([] { return rt::sched.last_poll.load(rt::seq_cst) == 0; }));
          all_hold(rt::spoils::crumbs);
          pretended_spinner spinner;
          bool woken = one.wake() && another.wake();
          spinner.stop();
          rt::netpoll_break();
          if (woken) CHECK(one.runs());
          return woken;
        });
      },
      {.procs = 2});
}

// S3 of an M that has nobody to wake, while an M has to sleep in the poller.
TEST_CASE("crumbs: who has nobody to wake for them takes them") {
  weft::run(
      [] {
        waits_for_io waits;
        weft::sleep(a_moment);
        {
          weft::no_preemption alone;
          pessimist all_the_time;
          constexpr int n = 20;
          std::atomic<int> ran{0};
          for (int i = 0; i < n; ++i) weft::go([&] { ++ran; });
          CHECK(stay_until([&] { return ran >= n - 1; }));  // the last one is runnext
          while (ran < n) weft::yield();
        }
      },
      {.procs = 2, .max_threads = 2});
}

// A P has something to be stolen, twenty thousand times. Thieves that came for all of it would steal hundreds of times.
TEST_CASE("crumbs: goroutines that do nothing stay on their P, mostly") {
  auto steals = [] {
    std::uint64_t n = 0;
    for (std::uint32_t i = 0; i < rt::sched.procs.load(rt::relaxed); ++i) n += p_of(i)->count.steals.get();
    return n;
  };
  weft::run(
      [&] {
        const std::uint64_t before = steals();
        const auto begin = clock::now();
        for (int i = 0; i < 20'000; ++i) {
          weft::wait_group w;
          for (int k = 0; k < 20; ++k) w.go([] {});
          w.wait();
        }
        const auto periods = (clock::now() - begin) / 100us;
        CAPTURE(periods);
        CHECK(steals() - before < 100 + 4 * static_cast<std::uint64_t>(periods));
      },
      {.procs = 4});
}
