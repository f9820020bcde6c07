// The bugs that Go had in its timers, as a program meets them. Each case names Go's issue and says what went wrong.
// tests/timers/timer_heap_bugs_test.cpp has the bugs in the table of states, at the level of the heap.
//
// Kills these mutants (tests/mutants): timers-44868-*.

#include "sched/enter.hpp"
#include "tests/sched/helpers.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <ctime>
#include <memory>
#include <random>
#include <thread>
#include <vector>
#include <weft/weft.hpp>

using namespace weft::test;
using weft::chan;
using weft::recv_result;
using weft::time_point;

namespace {

clock::duration cpu_time() {
  timespec t;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

constexpr auto past = std::chrono::hours(-24 * 365 * 50);

// Checks a timer that a plain thread sets while no P is held. Nobody suspects a deadlock either, so no M comes by to
// check for one.
void check_that_it_fires_while_all_sleep(std::chrono::microseconds d) {
  auto fired = std::make_shared<std::atomic<bool>>(false);
  clock::duration took{};
  weft::blocking([&] {
    std::thread([&] {
      std::this_thread::sleep_for(30ms);  // the Ms and sysmon have gone to sleep
      auto begin = clock::now();
      weft::after_func(d, [fired] { *fired = true; });
      while (!*fired && clock::now() - begin < 3s) std::this_thread::sleep_for(100us);
      took = clock::now() - begin;
    }).join();
  });
  INFO("a timer of " << d.count() << " us");
  CHECK(*fired);
  CHECK(took >= d);
  CHECK(took < 2s);
}

}  // namespace

// Go 1.14 locked up when timers were reset very often: a goroutine was preempted with a timer in timerModifying, and
// the scheduler then waited for that state to pass.
TEST_CASE("Go issue 38023: resets without end do not lock up the scheduler") {
  weft::run([] {
    std::vector<heap_timer> timers;
    for (int i = 0; i < 8; ++i) timers.emplace_back(1h);
    std::atomic<bool> over{false};
    std::atomic<int> slept{0};
    weft::wait_group w;
    for (unsigned g = 0; g < 4; ++g) {
      w.go([&, g] {
        std::mt19937 random(g);
        while (!over) {
          // No call here waits, so only preemption lets the others run.
          for (int i = 0; i < 100; ++i) {
            auto& t = timers[random() % timers.size()];
            if (random() % 4 == 0) t.stop();
            t.reset(std::chrono::microseconds(random() % 100));
          }
        }
      });
    }
    w.go([&] {
      for (int i = 0; i < 20; ++i) {
        weft::sleep(100us);
        ++slept;
      }
      over = true;
    });
    w.wait();
    CHECK(slept == 20);
    for (auto& t : timers) t.stop();
  });
}

// Go 1.16: a timer was set on a P while no thread slept in the poller, as there had been no timer. Nobody was woken for
// it, and it fired after up to two minutes, at the forced collection.
TEST_CASE("Go issue 44868: a timer that is set while everybody sleeps, and nobody in the poller, fires in time") {
  weft::run([] {
    for (auto d : {0us, 1us, 500us, 3000us}) check_that_it_fires_while_all_sleep(d);
  });
}

// The other half of that issue: while a P idled, it was forgotten that the P had timers, and the thread that came for
// one of them looked elsewhere. Plain threads set their timers on P 0.
TEST_CASE("Go issue 44868: the timers of a P that idles are not forgotten") {
  weft::run(
      [] {
        std::atomic<int> running{0};
        weft::wait_group w;
        for (int i = 0; i < 2; ++i) {
          w.go([&] {
            bool first;
            auto fired = std::make_shared<std::atomic<bool>>(false);
            {
              weft::no_preemption alone;
              ++running;
              stay_until([&] { return running == 2; });  // each on a P of its own
              first = rt::this_m()->p.load(rt::relaxed)->id == 0;
              if (!first) {
                stay_until([] { return rt::sched.idle_ps.load(rt::seq_cst) == 1; });
                weft::after_func(20ms, [] {});
                weft::after_func(60ms, [fired] { *fired = true; });
              }
            }
            if (first) return;
            // Timers of this P, which idles before they are due. The M that sleeps for the first one must ask anew for
            // the second.
            CHECK(weft::blocking([&] { return stay_until(*fired); }));
            // The P that idled last is the first to be woken.
            for (auto d : {0us, 1us, 500us, 3000us}) check_that_it_fires_while_all_sleep(d);
          });
        }
        w.wait();
      },
      {.procs = 2});
}

// The same while an M sleeps in the poller, so its sleep has to be broken off.
TEST_CASE("a timer that is set while somebody sleeps in the poller for a later one, or for ever, fires in time") {
  weft::run([] {
    auto later = weft::after_func(1h, [] {});
    for (auto d : {0us, 1us, 500us, 3000us}) check_that_it_fires_while_all_sleep(d);
  });
  weft::run([] {
    weft::go([listener = weft::net::tcp_listener::bind("127.0.0.1:0")]() mutable { listener.accept(); });
    for (auto d : {0us, 1us, 500us, 3000us}) check_that_it_fires_while_all_sleep(d);
  });
}

// Go 1.16: a timer that was moved to the past again and again was dropped. The hint for it was cleared by an adjustment
// that did not look at the timer. After time's TestTimerModifiedEarlier.
TEST_CASE("Go issue 47329: a timer that is rapidly moved earlier is not dropped") {
  weft::run([] {
    for (int i = 0; i < fewer(1000); ++i) {
      heap_timer t{1h};
      for (int j = 0; j < 10; ++j) {
        if (!t.stop()) (void)t.channel().recv();
        t.reset(past);
      }
      time_point v;
      if (t.channel().recv_for(v, late) != recv_result::value) FAIL("round " << i << ": it did not fire");
    }
  });
}

// Go 1.16.7: an adjustment of the heap skipped some of the timers that were made earlier. After time's
// TestAdjustTimers.
TEST_CASE("Go issue 47762: among timers that are moved earlier and later, none is late") {
  weft::run([] {
    std::mt19937 random(7);
    struct one {
      heap_timer t{0s};
      int state = 1;
    };
    std::vector<one> timers(100);
    while (!timers.empty()) {
      one& o = timers[random() % timers.size()];
      switch (o.state++) {
        case 1: CHECK(o.t.channel().recv()); break;
        case 2: CHECK_FALSE(o.t.reset(1min)); break;
        case 4: CHECK_FALSE(o.t.reset(3min)); break;
        case 6: CHECK_FALSE(o.t.reset(2min)); break;
        case 3:
        case 5:
        case 7: CHECK(o.t.stop()); break;
        case 8: CHECK_FALSE(o.t.reset(0s)); break;
        case 9: {
          time_point v;
          CHECK(o.t.channel().recv_for(v, late) == recv_result::value);
          break;
        }
        default: o = timers.back(); timers.pop_back();
      }
    }
  });
}

// Go 1.16.7: the last timer of a P was moved earlier and stopped. Its time stayed behind as the next time of that P,
// was soon in the past, and made every idle thread spin.
TEST_CASE("Go issue 51654: after the last timer was moved earlier and stopped, nobody computes") {
  weft::run([] {
    for (int round = 0; round < 3; ++round) {
      std::vector<heap_timer> timers;
      for (int i = 0; i < 20; ++i) timers.emplace_back(1h);
      // In the heaps of several Ps.
      weft::wait_group w;
      for (auto& t : timers) w.go([&] { t.reset(2ms); });
      w.wait();
      for (auto& t : timers) t.stop();
    }
    chan<void> woken;
    clock::duration computed{};
    std::thread foreign([&computed, woken] {
      std::this_thread::sleep_for(50ms);  // until spinning and dozing are over
      auto before = cpu_time();
      std::this_thread::sleep_for(200ms);
      computed = cpu_time() - before;
      woken.send();
    });
    woken.recv();  // without a time limit: that would be a timer
    weft::blocking([&] { foreign.join(); });
    CHECK(computed < 60ms);
  });
}
