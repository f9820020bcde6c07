// The bugs that Go had in this table of states, at the level of the heap. Each case names Go's issue and says what went
// wrong in Go. tests/go/timer_bugs_test.cpp has the same bugs as a program meets them.
//
// Kills these mutants (tests/mutants): timers-38023-*, timers-47329-*, timers-47762-*, timers-51654-*.

#include "tests/support/catch.hpp"
#include "tests/support/interleave.hpp"
#include "timers/timer_heap.hpp"

#include <array>
#include <string>
#include <vector>

using namespace weft::rt;
using weft::test::interleaving;
using weft::test::seeds;

namespace {

struct counting_timer : timer {
  int fired = 0;
  static void fire(timer* self, std::uint64_t, nanos) noexcept { ++static_cast<counting_timer*>(self)->fired; }
};

bool set(timer_heap& h, counting_timer& t, nanos when) {
  return change_timer(h, &t, {when, 0, counting_timer::fire, 0}).was_pending;
}

nanos time_of(const timer& t) {
  timer_status s = t.status.load(acquire);
  return s == timer_status::modified_earlier || s == timer_status::modified_later ? t.next_when : t.when;
}

bool is_armed(const timer& t) {
  timer_status s = t.status.load(acquire);
  return s == timer_status::waiting || s == timer_status::modified_earlier || s == timer_status::modified_later;
}

}  // namespace

// Go 1.14: a goroutine was preempted inside modtimer, with the timer in timerModifying. Whoever looked at that heap,
// even on the same M, waited forever for the state to pass (38023, 38070).
// Here: a thread that holds a timer in `modifying` does not wait for a thread that might look at it.
TEST_CASE("Go issue 38023: timers are changed while others look at them, and all get to an end") {
  for (std::uint64_t seed = 0; seed < seeds(5000); ++seed) {
    interleaving threads(seed);
    timer_heap h;
    std::array<counting_timer, 3> ts;
    for (auto& t : ts) set(h, t, 50);
    for (int m = 0; m < 2; ++m) {
      threads.add([&] {
        for (int i = 0; i < 5; ++i) {
          counting_timer& t = ts[threads.random().below(ts.size())];
          if (threads.random().below(3) == 0) {
            del_timer(&t, nullptr);
          } else {
            set(h, t, 40 + static_cast<nanos>(threads.random().below(20)));
          }
        }
      });
    }
    threads.add([&] {
      for (nanos now = 40; now < 60; now += 4) {
        bool ran = false;
        h.check(now, true, &ran);
        h.tidy();
      }
    });
    INFO("seed " << seed);
    REQUIRE(threads.run() == "");
    h.clear();
  }
}

// Go 1.16: adjusttimers cleared timerModifiedEarliest while a timer was just being made earlier, since the hint and the
// count of such timers were written one after the other. The timer fired only when something else woke the P.
TEST_CASE("Go issue 47329: a timer that is made earlier during an adjustment is not forgotten") {
  for (std::uint64_t seed = 0; seed < seeds(20000); ++seed) {
    interleaving threads(seed);
    timer_heap h;
    std::array<counting_timer, 4> ts;
    for (std::size_t i = 0; i < ts.size(); ++i) set(h, ts[i], 1000 + static_cast<nanos>(i));
    nanos now = 10;
    int changing = 2;
    for (int m = 0; m < 2; ++m) {
      threads.add([&, m] {
        // Each thread has two timers of its own, and moves them earlier in quick succession.
        for (int i = 0; i < 4; ++i) {
          counting_timer& t = ts[static_cast<std::size_t>(2 * m) + threads.random().below(2)];
          set(h, t, now + 1 + static_cast<nanos>(threads.random().below(300)));
        }
        --changing;
      });
    }
    threads.add([&] {
      while (changing > 0) {
        bool ran = false;
        h.check(now, true, &ran);
        now += static_cast<nanos>(threads.random().below(60));
      }
    });
    INFO("seed " << seed);
    REQUIRE(threads.run() == "");
    nanos hint = h.wake_when();
    for (auto& t : ts) {
      if (is_armed(t)) REQUIRE((hint != 0 && hint <= time_of(t)));
    }
    h.clear();
  }
}

// Go 1.16.7: adjusttimers took a timer out of the heap in the middle of its walk and went on at the same place,
// although other timers had moved to places that it had passed. Those kept their old time, and the hint for them was
// cleared.
TEST_CASE("Go issue 47762: an adjustment puts every timer right, whatever it takes out on its way") {
  for (std::uint64_t seed = 0; seed < seeds(300); ++seed) {
    interleaving threads(seed);
    auto& random = threads.random();
    timer_heap h;
    std::vector<counting_timer> ts(100);
    for (auto& t : ts) set(h, t, 1000 + static_cast<nanos>(random.below(200)));
    for (int round = 0; round < 3; ++round) {
      std::vector<counting_timer*> due;
      for (auto& t : ts) {
        switch (random.below(4)) {
          case 0: del_timer(&t, nullptr); break;
          case 1: set(h, t, 2000 + static_cast<nanos>(random.below(200))); break;
          case 2:
            set(h, t, 10 + round);
            due.push_back(&t);
            break;
          default: break;
        }
        t.fired = 0;
      }
      bool ran = false;
      h.check(10 + round, false, &ran);
      INFO("seed " << seed << ", round " << round);
      int fired = 0;
      for (auto& t : ts) fired += t.fired;
      REQUIRE(fired == static_cast<int>(due.size()));
      for (counting_timer* t : due) REQUIRE(t->fired == 1);
    }
    h.clear();
  }
}

// Go 1.16.7: the last timer of a heap was made earlier, then stopped, then taken out before its time. The hint stayed
// behind, and as adjusttimers did nothing with an empty heap, every look for how long to sleep said "not at all".
TEST_CASE("Go issue 51654: a heap that has become empty has no time to wake for") {
  struct look {
    const char* name;
    void (*at)(timer_heap&);
  };
  const look looks[] = {
      {"another P looks",
       [](timer_heap& h) {
         bool ran = false;
         h.check(20, false, &ran);
       }},
      {"its own P looks",
       [](timer_heap& h) {
         bool ran = false;
         h.check(20, true, &ran);
       }},
      {"an idle M tidies", [](timer_heap& h) { h.tidy(); }},
      {"another P looks later",
       [](timer_heap& h) {
         bool ran = false;
         h.check(60, false, &ran);
       }},
      {"its timers move away", [](timer_heap& h) { timer_heap{}.take_all(h); }},
      {"run() ends", [](timer_heap& h) { h.clear(); }},
  };
  for (const look& l : looks) {
    timer_heap h;
    std::array<counting_timer, 2> ts;
    set(h, ts[0], 100);
    set(h, ts[0], 50);  // sets the hint
    CHECK(h.wake_when() == 50);
    REQUIRE(del_timer(&ts[0], nullptr));
    l.at(h);
    INFO(l.name);
    if (h.size() == 0) CHECK(h.wake_when() == 0);
    // Whatever comes next, in any order, finds nothing left over.
    set(h, ts[1], 30);
    bool ran = false;
    h.check(30, false, &ran);
    CHECK(ts[1].fired == 1);
    h.tidy();
    CHECK(h.size() == 0);
    CHECK(h.wake_when() == 0);
    CHECK(ts[0].fired == 0);
  }
}
