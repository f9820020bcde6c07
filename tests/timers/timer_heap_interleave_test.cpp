// The timer states and the wake-up hints through their interleavings.
//
// Kills these mutants (tests/mutants): timers-hint-after-state, timers-hint-not-folded, timers-hint-cleared-blind,
// timers-deleted-counted-late, timers-fire-without-cas.

#include "tests/support/catch.hpp"
#include "tests/support/interleave.hpp"
#include "timers/timer_heap.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

using namespace weft::rt;
using weft::test::interleaving;
using weft::test::seeds;

namespace {

struct test_timer : timer {
  int armed = 0, taken_back = 0, times_fired = 0;
  nanos* clock = nullptr;
  static void fire(timer* self, std::uint64_t, nanos due) noexcept {
    auto* t = static_cast<test_timer*>(self);
    if (*t->clock < due) interleaving::fail("a timer fires early");
    ++t->times_fired;
  }
};

std::string everything_at_once(std::uint64_t seed) {
  interleaving threads(seed);
  auto& random = threads.random();
  nanos now = 100;
  std::array<timer_heap, 2> heaps;
  std::array<test_timer, 3> timers;
  for (auto& t : timers) t.clock = &now;
  int modifiers = 2;

  for (int m = 0; m < 2; ++m) {
    threads.add([&] {
      for (int i = 0; i < 8; ++i) {
        test_timer& t = timers[random.below(timers.size())];
        if (random.below(3) == 0) {
          if (del_timer(&t)) ++t.taken_back;
        } else {
          ++t.armed;
          nanos when = now - 2 + random.below(12);
          auto r = change_timer(heaps[random.below(2)], &t, when, 0, test_timer::fire, 0);
          if (r.was_pending) ++t.taken_back;
        }
      }
      --modifiers;
    });
  }
  for (int r = 0; r < 2; ++r) {
    threads.add([&, r] {
      while (modifiers > 0) {
        bool ran = false;
        heaps[random.below(4) == 0 ? 1 - r : r].check(now, random.below(2) == 0, &ran);
        if (random.below(4) == 0) heaps[r].tidy();
        if (random.below(2) == 0) ++now;
      }
    });
  }
  // Whoever looks from outside: the number of stopped ones is never below zero, and few are there.
  threads.add([&] {
    while (modifiers > 0) {
      for (auto& h : heaps) interleaving::check(h.deleted_count() <= timers.size(), "fewer than no timer is stopped");
    }
  });
  std::string wrong = threads.run();
  if (!wrong.empty()) return wrong;
  bool ran = false;
  now += 1000;
  for (auto& h : heaps) h.check(now, true, &ran);
  for (auto& t : timers) {
    if (t.armed != t.times_fired + t.taken_back) {
      return "armed " + std::to_string(t.armed) + " times, fired " + std::to_string(t.times_fired) + ", taken back " +
             std::to_string(t.taken_back);
    }
  }
  for (auto& h : heaps) h.clear();
  return "";
}

// An M sleeps in the poller as find.cpp does (sleep_in_poller), others arm timers as timing.cpp does (wake_net_poller):
// when all is quiet, the sleeper does not sleep past a timer.
std::string sleeper_and_modifiers(std::uint64_t seed) {
  interleaving threads(seed);
  auto& random = threads.random();
  nanos now = 100;
  timer_heap heap;
  std::array<test_timer, 3> timers;
  for (auto& t : timers) t.clock = &now;
  atomic<nanos> last_poll{1}, poll_until{0};
  bool broken = false, asleep = false;
  nanos sleeps_until = 0;
  int modifiers = 2;

  threads.add([&] {
    for (;;) {
      bool ran = false;
      heap.check(now, true, &ran);
      heap.tidy();
      nanos until = heap.wake_when();
      last_poll.exchange(0, seq_cst);
      poll_until.store(until, seq_cst);
      nanos again = heap.wake_when();
      if (until == 0 || (again != 0 && again < until)) until = again;
      poll_until.store(until, seq_cst);
      sleeps_until = until;
      asleep = true;
      interleaving::wait_until([&] { return broken || (until != 0 && now >= until) || modifiers == 0; });
      bool over = modifiers == 0 && !broken && !(until != 0 && now >= until);
      if (over) return;  // still asleep
      asleep = false;
      broken = false;
      poll_until.store(0, seq_cst);
      last_poll.store(now, seq_cst);
    }
  });
  for (int m = 0; m < 2; ++m) {
    threads.add([&] {
      for (int i = 0; i < 6; ++i) {
        test_timer& t = timers[random.below(timers.size())];
        if (random.below(4) == 0) {
          (void)del_timer(&t);
        } else {
          nanos when = now + random.below(30);
          auto r = change_timer(heap, &t, when, 0, test_timer::fire, 0);
          if (r.earliest && last_poll.load(seq_cst) == 0) {
            nanos until = poll_until.load(seq_cst);
            if (until == 0 || until > when) broken = true;
          }
        }
        if (random.below(3) == 0) now += random.below(4);
      }
      --modifiers;
    });
  }
  std::string wrong = threads.run();
  if (!wrong.empty()) return wrong;
  for (auto& t : timers) {
    timer_status s = t.status.load(acquire);
    bool later = s == timer_status::modified_earlier || s == timer_status::modified_later;
    if (!later && s != timer_status::waiting) continue;
    nanos when = later ? t.next_when : t.when;
    if (sleeps_until == 0 || sleeps_until > when) {
      return "sleeps until " + std::to_string(sleeps_until) + ", past a timer of " + std::to_string(when);
    }
  }
  heap.clear();
  return asleep ? "" : "it should sleep";
}

// While timers stay armed for 50 at the latest, nobody may read a hint that is later, however much goes on.
std::string hint_never_late(std::uint64_t seed) {
  interleaving threads(seed);
  auto& random = threads.random();
  nanos now = 10;
  timer_heap heap;
  test_timer far, near, noise;
  for (auto* t : {&far, &near, &noise}) t->clock = &now;
  (void)change_timer(heap, &far, 1000, 0, test_timer::fire, 0);
  (void)change_timer(heap, &near, 900, 0, test_timer::fire, 0);
  (void)change_timer(heap, &noise, 800, 0, test_timer::fire, 0);
  (void)change_timer(heap, &near, 50, 0, test_timer::fire, 0);
  bool done = false;
  threads.add([&] {
    for (int i = 0; i < 6; ++i) {
      (void)change_timer(heap, &noise, now + random.below(4), 0, test_timer::fire, 0);
      if (random.below(3) == 0) (void)del_timer(&noise);
    }
    done = true;
  });
  threads.add([&] {
    while (!done && now < 49) {
      bool ran = false;
      heap.check(now, true, &ran);
      if (random.below(2) == 0) heap.tidy();
      ++now;
    }
  });
  threads.add([&] {
    while (!done) {
      nanos hint = heap.wake_when();
      interleaving::check(hint != 0 && hint <= 50, "the hint is too late");
    }
  });
  std::string wrong = threads.run();
  heap.clear();
  return wrong;
}

// Whoever has made a timer earlier finds the hint right from then on, also while somebody rebuilds the heap.
std::string hint_lowered_during_rebuild(std::uint64_t seed) {
  interleaving threads(seed);
  nanos now = 10;
  timer_heap heap;
  test_timer mine, other, stopped;
  for (auto* t : {&mine, &other, &stopped}) t->clock = &now;
  (void)change_timer(heap, &mine, 900, 0, test_timer::fire, 0);
  (void)change_timer(heap, &other, 700, 0, test_timer::fire, 0);
  bool done = false;
  threads.add([&] {
    for (int i = 0; i < 4; ++i) {
      (void)change_timer(heap, &mine, 50 - i, 0, test_timer::fire, 0);
      nanos hint = heap.wake_when();
      interleaving::check(hint != 0 && hint <= 50 - i, "the hint is too late");
      (void)change_timer(heap, &mine, 900, 0, test_timer::fire, 0);
    }
    done = true;
  });
  threads.add([&] {
    for (nanos when = 500; !done; when = 1200 - when) {
      (void)change_timer(heap, &other, when, 0, test_timer::fire, 0);
      (void)change_timer(heap, &stopped, 800, 0, test_timer::fire, 0);
      (void)del_timer(&stopped);
      heap.tidy();
    }
  });
  std::string wrong = threads.run();
  heap.clear();
  return wrong;
}

}  // namespace

TEST_CASE("timer states: each arming fires once or is taken back once") {
  for (std::uint64_t seed = 0; seed < seeds(10000); ++seed) {
    std::string wrong = everything_at_once(seed);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}

TEST_CASE("timer hints: nobody sleeps past a timer") {
  for (std::uint64_t seed = 0; seed < seeds(20000); ++seed) {
    std::string wrong = sleeper_and_modifiers(seed);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}

TEST_CASE("timer hints: too early, perhaps, but never too late") {
  for (std::uint64_t seed = 0; seed < seeds(20000); ++seed) {
    std::string wrong = hint_never_late(seed);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}

TEST_CASE("timer hints: lowered while the heap is rebuilt") {
  for (std::uint64_t seed = 0; seed < seeds(5000); ++seed) {
    std::string wrong = hint_lowered_during_rebuild(seed);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}
