// The trial that finds out whether the help of one more P is of use (sched/help_trial.cpp).
//
// Kills these mutants (tests/mutants): help-*.

#include "sched/help_trial.hpp"

#include "runtime/deadline_clock.hpp"
#include "runtime/sanitizer.hpp"
#include "tests/sched/helpers.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <functional>
#include <vector>

using namespace weft::test;

namespace {

// A helper and what goes on around it. Rates are the goroutines that run, and the values that are passed, in each µs.
struct helper {
  helper() { rt::sched.next_trial_of_all = 0; }

  rt::help_trial trial;
  rt::work_done done{.at = 1'000'000'000, .busy_ps = 1};

  void pass(std::uint64_t us, std::uint64_t goroutines_per_us, std::uint64_t values_per_us = 0) {
    done.at += us * rt::cpu_tick_rate.per_us;
    done.dispatches += us * goroutines_per_us;
    done.readied += us * goroutines_per_us;
    done.values += us * values_per_us;
  }

  // Calls the helper every 50 µs, at most `times` times. Returns true once it stays away.
  bool is_called(int times, std::uint64_t goroutines_per_us) {
    for (int i = 0; i < times; ++i) {
      if (trial.begin_doze(done)) return true;
      pass(50, goroutines_per_us);
    }
    return false;
  }

  // Returns for how many dozes the helper stays away, at most 1000.
  int stays_for(std::uint64_t goroutines_per_us, std::uint64_t values_per_us = 0) {
    int dozes = 1;
    while (dozes < 1000 && stays(goroutines_per_us, values_per_us)) ++dozes;
    return dozes;
  }
  bool stays(std::uint64_t goroutines_per_us, std::uint64_t values_per_us = 0) {
    pass(100, goroutines_per_us, values_per_us);
    return trial.stays_away(done);
  }

  // Rouses the helper again and again, `us` after it has begun to doze. Returns how often, until it comes; at most
  // 1000.
  int is_roused_each(std::uint64_t us) {
    int dozes = 0;
    for (; dozes < 1000 && trial.begin_doze(done); ++dozes) pass(us, 20);
    return dozes;
  }

  // The helper collides with another P, `collisions` times in each 50 µs. Returns true once it leaves.
  bool leaves(std::uint64_t collisions, std::uint64_t values_per_us, std::uint64_t goroutines_per_us = 1) {
    for (int i = 0; i < 20; ++i) {
      if (trial.may_leave(done.at) && trial.leaves(done)) return true;
      pass(50, goroutines_per_us, values_per_us);
      done.collisions += collisions;
    }
    return false;
  }

  // The helper finds out that it does not help: the other P does as much without it.
  void is_of_no_use(std::uint64_t goroutines_per_us = 20, std::uint64_t values_per_us = 0) {
    for (int i = 0; i < 5; ++i) REQUIRE(stays(goroutines_per_us, values_per_us));
  }
};

helper that_is_of_no_use() {
  helper h;
  REQUIRE(h.is_called(20, 20));
  h.is_of_no_use();
  return h;
}

}  // namespace

TEST_CASE("help: who is called again and again stays away for a while, to compare") {
  helper h;
  CHECK(h.is_called(20, 20));

  SECTION("and for long if it makes no difference") {
    const int dozes = h.stays_for(20);
    CHECK(dozes > 200);
    CHECK(dozes < 220);
    CHECK(h.is_called(20, 20));  // then it stays away once more
  }
  SECTION("and for long if it is in the way") { CHECK(h.stays_for(40) > 200); }
  SECTION("and comes if it helps, for long") {
    CHECK(h.stays_for(15) < 10);
    CHECK_FALSE(h.is_called(390, 20));
    CHECK(h.is_called(40, 20));
  }
  SECTION("and, if it is roused, begins to measure anew") {
    for (int i = 0; i < 2; ++i) CHECK(h.stays(16));
    h.pass(100, 24);  // roused
    CHECK(h.trial.begin_doze(h.done));
    CHECK(h.stays_for(16) < 10);
  }
}

TEST_CASE("help: who is roused while it compares, and works for long, does not go on with that") {
  helper h;
  REQUIRE(h.is_called(20, 20));
  h.pass(3000, 20);
  CHECK_FALSE(h.trial.begin_doze(h.done));
}

TEST_CASE("help: who is roused again and again does not compare for ever") {
  helper h;
  REQUIRE(h.is_called(20, 20));
  const int dozes = h.is_roused_each(90);
  CHECK(dozes > 10);
  CHECK(dozes < 30);
  CHECK_FALSE(h.is_called(380, 20));
}

TEST_CASE("help: who is of no use, and is roused all the time, comes when goroutines are long, or after some time") {
  helper h = that_is_of_no_use();
  const int dozes = h.is_roused_each(30);
  CHECK(dozes > 600);
  CHECK(dozes < 700);
  REQUIRE(h.is_called(20, 20));
  h.is_of_no_use();
  h.pass(30, 1);
  CHECK(h.trial.begin_doze(h.done));  // so soon it cannot be seen that goroutines are long
  h.pass(30, 1);
  CHECK_FALSE(h.trial.begin_doze(h.done));
}

TEST_CASE("help: who is called now and then comes") {
  helper h;
  for (int i = 0; i < 100; ++i) {
    CHECK_FALSE(h.is_called(1, 20));
    h.pass(900, 20);
  }
}

TEST_CASE("help: where goroutines are long, the helper comes") {
  helper h;
  CHECK_FALSE(h.is_called(1000, 3));
}

TEST_CASE("help: where three run, the helper comes") {
  helper h;
  h.done.busy_ps = 2;
  CHECK_FALSE(h.is_called(1000, 20));
}

TEST_CASE("help: who stays away comes when goroutines become long") {
  helper h;
  CHECK(h.is_called(20, 20));
  SECTION("while it compares") {}
  SECTION("afterwards") { h.is_of_no_use(); }
  CHECK(h.stays_for(3) == 1);
  CHECK_FALSE(h.trial.begin_doze(h.done));
}

TEST_CASE("help: who stays away comes when others take Ps") {
  helper h = that_is_of_no_use();
  h.done.busy_ps = 2;
  CHECK(h.stays_for(20) == 1);
}

TEST_CASE("help: who stays away comes when less gets done, twice in a row") {
  helper h = that_is_of_no_use();
  for (int i = 0; i < 3; ++i) {
    CHECK(h.stays(10));
    CHECK(h.stays(20));
  }
  CHECK(h.stays_for(10) == 2);
  CHECK(h.is_called(20, 10));  // and it compares at once
}

TEST_CASE("help: who collides with another P leaves, to compare") {
  helper h;
  h.done.busy_ps = 2;

  SECTION("and stays away if the other does as much alone") {
    REQUIRE(h.leaves(20, 50));
    h.done.busy_ps = 1;
    CHECK(h.stays_for(1, 50) > 200);
  }
  SECTION("and comes if it helps, and leaves more and more seldom") {
    std::uint64_t pause_us = 20'000;
    for (int i = 0; i < 8; ++i) {
      REQUIRE(h.leaves(20, 50));
      h.done.busy_ps = 1;
      CHECK(h.stays_for(1, 20) < 10);
      h.done.busy_ps = 2;
      h.pass(pause_us - 2000, 0);
      CHECK_FALSE(h.leaves(20, 50));
      h.pass(2000, 0);
      pause_us = std::min<std::uint64_t>(2 * pause_us, 320'000);
    }
  }
  SECTION("and leaves again at once if it was roused for something else") {
    REQUIRE(h.leaves(20, 50));
    h.done.busy_ps = 1;
    h.is_of_no_use(1, 50);
    h.done.busy_ps = 2;
    CHECK(h.leaves(20, 50));
    h.done.busy_ps = 1;
    CHECK(h.trial.begin_doze(h.done));
    CHECK(h.stays_for(1, 50) > 150);
  }
  SECTION("but not if they collide now and then") { CHECK_FALSE(h.leaves(10, 50)); }
  SECTION("nor if the values are few") { CHECK_FALSE(h.leaves(20, 5)); }
  SECTION("nor if goroutines run for long each time") { CHECK_FALSE(h.leaves(20, 50, 0)); }
}

TEST_CASE("help: of many that collide one leaves, the others follow, and it compares one with all") {
  helper h;
  h.done.busy_ps = 16;

  SECTION("and all stay away if one does more alone") {
    REQUIRE(h.leaves(20, 50));
    CHECK(h.trial.is_of_all());
    h.done.busy_ps = 7;
    CHECK(h.trial.begin_doze(h.done));  // not all have left yet
    CHECK(h.stays(1, 50));
    h.done.busy_ps = 1;
    CHECK(h.stays_for(1, 52) > 200);
  }
  SECTION("and comes if one does less, and nobody tries that out again soon") {
    std::uint64_t pause_us = 20'000;
    for (int i = 0; i < 8; ++i) {
      REQUIRE(h.leaves(20, 50));
      h.done.busy_ps = 1;
      CHECK(h.stays_for(1, 48) < 10);
      h.done.busy_ps = 16;
      h.pass(pause_us - 3000, 0);
      helper another = h;
      another.trial = {};
      CHECK_FALSE(another.leaves(20, 50));
      another.done.busy_ps = 2;
      CHECK(another.leaves(20, 50));  // two are another matter
      CHECK_FALSE(another.trial.is_of_all());
      h.pass(3000, 0);
      pause_us = std::min<std::uint64_t>(2 * pause_us, 320'000);
    }
  }
  SECTION("and comes if one does very little") {
    REQUIRE(h.leaves(20, 50));
    h.done.busy_ps = 1;
    CHECK(h.stays_for(1, 2) < 3);
    h.done.busy_ps = 16;
    CHECK_FALSE(h.leaves(20, 50));
  }
  SECTION("and does not begin again soon if it is roused, or others come") {
    REQUIRE(h.leaves(20, 50));
    SECTION("while others leave") { h.done.busy_ps = 16; }
    SECTION("while it compares") {
      h.done.busy_ps = 1;
      CHECK(h.stays(1, 50));
      h.done.busy_ps = 16;
    }
    SECTION("later") {
      h.done.busy_ps = 1;
      h.is_of_no_use(1, 52);
      h.done.busy_ps = 16;
    }
    h.pass(1000, 1, 50);
    CHECK(h.stays_for(1, 50) < 5);
    CHECK_FALSE(h.leaves(20, 50));
    helper another = h;
    another.trial = {};
    another.pass(16'000, 1, 50);
    CHECK_FALSE(another.leaves(20, 50));
  }
  SECTION("and comes if others do not leave") {
    REQUIRE(h.leaves(20, 50));
    h.done.busy_ps = 2;
    CHECK(h.stays_for(1, 50) < 5);
    h.done.busy_ps = 16;
    CHECK_FALSE(h.leaves(20, 50));
  }
}

TEST_CASE("help: who is roused for something else stays away afterwards") {
  helper h = that_is_of_no_use();
  h.pass(1000, 5);  // it ran what it was roused for
  CHECK(h.trial.begin_doze(h.done));
  CHECK(h.stays_for(20) > 150);
}

namespace {

// Runs goroutines that do nothing, a thousand at a time, until 60 times in a row nobody has taken a P. Returns false if
// that does not happen.
bool run_empty_ones_until_left_alone() {
  auto taken = [] {
    rt::lock_guard hold(rt::sched.mutex);
    return rt::sched.ps_taken.load(rt::relaxed);
  };
  const auto give_up = clock::now() + late;
  int times = 0;
  for (auto before = taken(); times < 60 && clock::now() < give_up; ++times) {
    std::vector<weft::task<void>> all;
    for (int i = 0; i < 1000; ++i) all.push_back(weft::spawn([] {}));
    for (auto& each : all) each.join();
    if (const auto t = taken(); std::exchange(before, t) != t) times = 0;
  }
  return times == 60;
}

// Eight goroutines send through a channel what eight others receive, until `condition` holds at so many looks in a row,
// or `limit` has passed.
bool meet_at_a_channel_until(const std::function<bool()>& condition, int looks, clock::duration limit) {
  weft::chan<int> c(128);
  std::atomic<bool> over{false};
  weft::wait_group senders, receivers;
  for (int i = 0; i < 8; ++i) {
    senders.go([&, c] {
      while (!over) c.send(1);
    });
    receivers.go([c] {
      while (c.recv()) {}
    });
  }
  const bool held = weft::blocking([&] {
    return stay_until([&, in_a_row = 0]() mutable { return (in_a_row = condition() ? in_a_row + 1 : 0) == looks; },
                      limit);
  });
  over = true;
  senders.wait();
  c.close();
  receivers.wait();
  return held;
}

// The same, again and again: the Ms may begin on one processor, and then they do not meet.
bool meet_at_channels_until(const std::function<bool()>& condition, int looks) {
  constexpr int times = 20;
  for (int i = 0; i < times; ++i) {
    if (meet_at_a_channel_until(condition, looks, clock::duration(late) / times)) return true;
  }
  return false;
}

// True if goroutines and values take many times as long, as under a sanitizer.
bool is_sanitized() { return rt::asan_running() || rt::tsan_running(); }

}  // namespace

TEST_CASE("help: nobody comes to many that are empty, but to those behind one that is long") {
  if (is_sanitized()) return;
  weft::run(
      [] {
        for (int i = 0; i < 5; ++i) {
          REQUIRE(run_empty_ones_until_left_alone());
          std::atomic<bool> ran{false};
          weft::go([&] { ran = true; });
          weft::go([] {});  // runs next: nobody would come for it so soon
          weft::no_preemption stays;
          CHECK(stay_until(ran));
        }
      },
      {.procs = 2});
}

TEST_CASE("help: of two Ps that meet at a channel all the time one leaves, for some milliseconds") {
  if (is_sanitized()) return;
  weft::run(
      [] {
        for (int i = 0; i < 5; ++i) {
          CHECK(meet_at_channels_until([] { return rt::sched.idle_ps.load(rt::relaxed) == 1; }, 60));
        }
      },
      {.procs = 2});
}

TEST_CASE("help: of four Ps that meet at a channel all the time one leaves, and wants others to follow") {
  if (is_sanitized()) return;
  weft::run(
      [] { CHECK(meet_at_channels_until([] { return rt::sched.all_leave_to.load(rt::relaxed) != nullptr; }, 1)); },
      {.procs = 4});
}
