// The timer states and the wake-up hints through their interleavings.
//
// Kills these mutants (tests/mutants): timers-hint-own-head, timers-hint-another-head, timers-hint-after-state,
// timers-hint-not-folded, timers-hint-cleared-blind, timers-stopped-counted-plainly, timers-deleted-counted-late,
// timers-owner-gone-stale, timers-fire-without-cas.

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
          if (del_timer(&t, nullptr)) ++t.taken_back;
        } else {
          ++t.armed;
          nanos when = now - 2 + random.below(12);
          auto r = change_timer(heaps[random.below(2)], &t, {when, 0, test_timer::fire, 0});
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
        test_timer& t = timers[random.below(timers.size())];
        if (random.below(4) == 0 && del_timer(&t, &heaps[r])) ++t.taken_back;  // as the holder of this heap's P
        if (random.below(2) == 0) ++now;
      }
    });
  }
  // A thread that looks from outside. A count below zero would be a large number.
  constexpr std::uint32_t all_stops = 1000;
  threads.add([&] {
    while (modifiers > 0) {
      for (auto& h : heaps) interleaving::check(h.deleted_count() <= all_stops, "fewer than none are stopped");
    }
  });
  std::string wrong = threads.run();
  if (!wrong.empty()) return wrong;
  for (auto& h : heaps) {
    if (h.size() == 0 && h.wake_when() != 0) return "a hint is left in an empty heap";
    auto stopped = std::ranges::count_if(
        timers, [&](const test_timer& t) { return t.heap == &h && t.status.load(acquire) == timer_status::deleted; });
    if (h.deleted_count() != stopped) return "miscounts those that are stopped";
  }
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

// A timer that dies when its owner has let go of it and no heap holds it.
struct counted_timer : timer {
  struct total {
    nanos now = 100;
    int alive = 0, armed = 0, taken_back = 0, fired = 0;
  };
  explicit counted_timer(total& all) : of(all) {
    ++of.alive;
    dispose = [](timer* t) noexcept { delete static_cast<counted_timer*>(t); };
  }
  ~counted_timer() { --of.alive; }
  static void fire(timer* self, std::uint64_t, nanos) noexcept { ++static_cast<counted_timer*>(self)->of.fired; }

  total& of;
};

// Owners let go of timers, armed or stopped, while the heap cleans up. None is lost.
std::string owners_let_go(std::uint64_t seed) {
  interleaving threads(seed);
  auto& random = threads.random();
  timer_heap heap;
  counted_timer::total all;
  int owners = 2;
  for (int o = 0; o < 2; ++o) {
    threads.add([&] {
      for (int i = 0; i < 4; ++i) {
        auto* t = new counted_timer(all);
        for (int k = 0; k < 4; ++k) {
          if (random.below(2) == 0) {
            if (del_timer(t, nullptr)) ++all.taken_back;
          } else {
            ++all.armed;
            const nanos when = all.now + 5 + random.below(10);
            if (change_timer(heap, t, {when, 0, counted_timer::fire, 0}).was_pending) ++all.taken_back;
          }
        }
        t->release();
      }
      --owners;
    });
  }
  threads.add([&] {
    while (owners > 0) {
      bool ran = false;
      heap.check(all.now, true, &ran);
      heap.tidy();
      if (random.below(4) == 0) ++all.now;
    }
  });
  std::string wrong = threads.run();
  if (!wrong.empty()) return wrong;
  bool ran = false;
  heap.check(all.now + 1000, true, &ran);
  heap.clear();
  if (all.alive != 0) return std::to_string(all.alive) + " are left";
  if (all.armed == all.fired + all.taken_back) return "";
  return "armed " + std::to_string(all.armed) + " times, fired " + std::to_string(all.fired) + ", taken back " +
         std::to_string(all.taken_back);
}

// An M that sleeps in the poller as sleep_in_poller does it (poller_sleep.cpp), except that it looks at the hints only
// once; and what arms timers as timing.cpp does it (wake_net_poller).
struct poller {
  timer_heap& heap;
  const nanos& now;
  atomic<nanos> last_poll{1}, until{0};
  bool broken = false, asleep = false;
  nanos sleeps_until = 0;

  // Sleeps until `over`, each time until it is broken off or time is up. Is asleep at the end.
  template <class Over>
  void sleep_again_and_again(Over over) {
    for (;;) {
      last_poll.exchange(0, seq_cst);
      sleeps_until = heap.wake_when();
      until.store(sleeps_until, seq_cst);
      asleep = true;
      auto ends = [&] { return broken || (sleeps_until != 0 && now >= sleeps_until); };
      interleaving::wait_until([&] { return ends() || over(); });
      if (!ends()) return;
      asleep = false;
      broken = false;
      until.store(0, seq_cst);
      last_poll.store(now, seq_cst);
      bool ran = false;
      heap.check(now, true, &ran);
      heap.tidy();
    }
  }

  void arm(test_timer& t, nanos when) {
    if (!change_timer(heap, &t, {when, 0, test_timer::fire, 0}).earliest || last_poll.load(seq_cst) != 0) return;
    nanos u = until.load(seq_cst);
    if (u == 0 || u > when) broken = true;
  }

  std::string oversleeps(const test_timer& t) const {
    timer_status s = t.status.load(acquire);
    bool changed = s == timer_status::modified_earlier || s == timer_status::modified_later;
    if (!changed && s != timer_status::waiting) return "";
    nanos when = changed ? t.next_when : t.when;
    if (sleeps_until != 0 && sleeps_until <= when) return "";
    return "sleeps until " + std::to_string(sleeps_until) + ", past a timer of " + std::to_string(when);
  }
};

// When all is quiet, the sleeper must not sleep past a timer.
std::string sleeper_and_modifiers(std::uint64_t seed) {
  interleaving threads(seed);
  auto& random = threads.random();
  nanos now = 100;
  timer_heap heap;
  std::array<test_timer, 3> timers;
  for (auto& t : timers) t.clock = &now;
  poller m{heap, now};
  int modifiers = 2;

  threads.add([&] { m.sleep_again_and_again([&] { return modifiers == 0; }); });
  for (int i = 0; i < 2; ++i) {
    threads.add([&] {
      for (int n = 0; n < 6; ++n) {
        test_timer& t = timers[random.below(timers.size())];
        if (random.below(4) == 0) {
          (void)del_timer(&t, nullptr);
        } else {
          m.arm(t, now + random.below(30));
        }
        if (random.below(3) == 0) now += random.below(4);
      }
      --modifiers;
    });
  }
  std::string wrong = threads.run();
  for (auto& t : timers) {
    if (wrong.empty()) wrong = m.oversleeps(t);
  }
  heap.clear();
  if (!wrong.empty()) return wrong;
  return m.asleep ? "" : "it should sleep";
}

// A timer is made earlier, but not earlier than the head. The head was stopped, and another M cleans it out.
std::string sleeper_and_stopped_head(std::uint64_t seed) {
  interleaving threads(seed);
  nanos now = 10;
  timer_heap heap;
  test_timer head;
  std::array<test_timer, 4> others;  // so many that one stopped timer does not make `tidy` put all right
  (void)change_timer(heap, &head, {50, 0, test_timer::fire, 0});
  for (auto& t : others) (void)change_timer(heap, &t, {90, 0, test_timer::fire, 0});
  (void)del_timer(&head, nullptr);
  poller m{heap, now};
  int busy = 2;
  threads.add([&] { m.sleep_again_and_again([&] { return busy == 0; }); });
  threads.add([&] {
    m.arm(others[0], 70);
    --busy;
  });
  threads.add([&] {
    heap.tidy();
    --busy;
  });
  std::string wrong = threads.run();
  if (wrong.empty()) wrong = m.oversleeps(others[0]);
  heap.clear();
  return wrong;
}

// While a timer is armed for 50 at the latest, nobody may read a hint that is later, whatever else goes on.
std::string hint_never_late(std::uint64_t seed) {
  interleaving threads(seed);
  auto& random = threads.random();
  nanos now = 10;
  timer_heap heap;
  test_timer far, near, noise;
  for (auto* t : {&far, &near, &noise}) t->clock = &now;
  (void)change_timer(heap, &far, {1000, 0, test_timer::fire, 0});
  (void)change_timer(heap, &near, {900, 0, test_timer::fire, 0});
  (void)change_timer(heap, &noise, {800, 0, test_timer::fire, 0});
  (void)change_timer(heap, &near, {50, 0, test_timer::fire, 0});
  bool done = false;
  threads.add([&] {
    for (int i = 0; i < 6; ++i) {
      (void)change_timer(heap, &noise, {now + random.below(4), 0, test_timer::fire, 0});
      if (random.below(3) == 0) (void)del_timer(&noise, nullptr);
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

// A thread that has made a timer earlier finds the hint right from then on, even while another thread rebuilds the
// heap.
std::string hint_lowered_during_rebuild(std::uint64_t seed) {
  interleaving threads(seed);
  nanos now = 10;
  timer_heap heap;
  test_timer mine, other;
  std::array<test_timer, 3> stopped;  // more than the other timers, so that a pass is worth it
  for (auto* t : {&mine, &other}) t->clock = &now;
  for (auto& t : stopped) t.clock = &now;
  (void)change_timer(heap, &mine, {900, 0, test_timer::fire, 0});
  (void)change_timer(heap, &other, {700, 0, test_timer::fire, 0});
  bool done = false;
  threads.add([&] {
    for (int i = 0; i < 4; ++i) {
      (void)change_timer(heap, &mine, {50 - i, 0, test_timer::fire, 0});
      nanos hint = heap.wake_when();
      interleaving::check(hint != 0 && hint <= 50 - i, "the hint is too late");
      (void)change_timer(heap, &mine, {900, 0, test_timer::fire, 0});
    }
    done = true;
  });
  threads.add([&] {
    for (nanos when = 500; !done; when = 1200 - when) {
      (void)change_timer(heap, &other, {when, 0, test_timer::fire, 0});
      for (auto& t : stopped) (void)change_timer(heap, &t, {800, 0, test_timer::fire, 0});
      for (auto& t : stopped) (void)del_timer(&t, nullptr);
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

TEST_CASE("timer states: a timer whose owner has let go fires if it was armed, and is freed once") {
  for (std::uint64_t seed = 0; seed < seeds(10000); ++seed) {
    std::string wrong = owners_let_go(seed);
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

TEST_CASE("timer hints: a head that was stopped lets nobody sleep past another timer") {
  for (std::uint64_t seed = 0; seed < seeds(20000); ++seed) {
    std::string wrong = sleeper_and_stopped_head(seed);
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
