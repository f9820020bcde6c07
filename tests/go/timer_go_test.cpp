// Go's own tests of timers that timer_test.cpp does not have already, one case each, under their names: those of
// time/sleep_test.go, time/tick_test.go and runtime/proc_test.go. TestTimerModifiedEarlier and TestAdjustTimers are in
// timer_bugs_test.cpp. Three have no meaning here: TestTickerStopWithDirectInitialization and TestManualTicker (every
// ticker is made by its constructor), TestTick (weft has no such call).
//
// Upper bounds are generous, as in Go; but nothing may ever be early.

#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

using namespace weft::test;
using weft::chan;
using weft::on_default;
using weft::on_recv;
using weft::on_send;
using weft::recv_result;
using weft::select;
using weft::time_point;

namespace {

constexpr auto big = std::chrono::nanoseconds::max();

template <class Channel>
bool has_value(const Channel& c) {
  time_point v;
  return c.try_recv(v) == recv_result::value;
}

template <class Channel>
bool gets_value(const Channel& c) {
  time_point v;
  return c.recv_for(v, late) == recv_result::value;
}

}  // namespace

TEST_CASE("Go's TestTickerStress, TestTickerConcurrentStress: ten receivers of a ticker of 1 ns") {
  weft::run([] {
    std::atomic<bool> over{false};
    weft::wait_group others;
    others.go([&] {
      while (!over) weft::sleep(1ns);
    });
    weft::ticker k{1ns};
    weft::wait_group w;
    std::atomic<int> got{0};
    for (int g = 0; g < 10; ++g) {
      w.go([&] {
        for (int i = 0; i < 100; ++i) got += k.channel().recv().has_value();
      });
    }
    w.wait();
    CHECK(got == 1000);
    k.stop();
    over = true;
    others.wait();
  });
}

TEST_CASE("Go's TestAfterFuncStarvation: two that keep each other busy on one P do not starve a function") {
  weft::run([] {
    unsigned before = weft::set_procs(1);
    std::atomic<bool> stop{false};
    chan<bool> c{1};
    weft::wait_group w;
    w.go([=, &stop] {
      while (!stop) c.send(true);
      c.close();
    });
    w.go([=] {
      for (bool v : c) (void)v;
    });
    weft::after_func(1us, [&] { stop = true; });
    w.wait();
    weft::set_procs(before);
  });
}

TEST_CASE("Go's TestAfter, TestAfterTick: neither one nor several in a row are early") {
  weft::run([] {
    auto begin = clock::now();
    auto v = weft::after(10ms).recv();
    REQUIRE(v);
    CHECK(clock::now() - begin >= 10ms);
    CHECK(*v - begin >= 10ms);
    begin = clock::now();
    for (int i = 0; i < 10; ++i) (void)weft::after(2ms).recv();
    CHECK(clock::now() - begin >= 20ms);
  });
}

TEMPLATE_TEST_CASE("Go's TestAfterStop: what is stopped stays so while others fire", "", weft::timer, heap_timer) {
  weft::run([] {
    // Both are stopped before their time, unless the machine stands still. In that case the test tries again.
    for (int attempt = 0; attempt < 5; ++attempt) {
      weft::after_func(10ms, [] {});
      TestType t0{5ms};
      auto ran = std::make_shared<std::atomic<bool>>(false);
      auto t1 = weft::after_func(15ms, [=] { *ran = true; });
      auto c2 = weft::after(20ms);
      bool stopped0 = t0.stop(), stopped1 = t1.stop();
      if (!stopped0 || !stopped1) continue;
      (void)c2.recv();
      CHECK_FALSE(has_value(t0.channel()));
      CHECK_FALSE(*ran);
      CHECK_FALSE(t0.stop());
      CHECK_FALSE(t1.stop());
      return;
    }
    FAIL("five times in a row it was too late to stop them");
  });
}

TEST_CASE("Go's TestTimerStopStress: a hundred stop their timers in time") {
  weft::run([] {
    std::atomic<int> stopped{0}, ran{0}, both{0};
    weft::wait_group w;
    for (int i = 0; i < 100; ++i) {
      w.go([&] {
        std::atomic<bool> mine{false};
        auto t = weft::after_func(20ms, [&] {
          mine = true;
          ++ran;
        });
        weft::sleep(5ms);
        bool in_time = t.stop();
        stopped += in_time;
        weft::sleep(55ms);
        t.stop_and_wait();
        both += in_time && mine;
      });
    }
    w.wait();
    CHECK(both == 0);
    CHECK(stopped + ran == 100);  // if the machine stood still, some came too late
  });
}

TEST_CASE("Go's TestSleepZeroDeadlock: sleep(0) while the world is stopped again and again") {
  weft::run([] {
    unsigned before = weft::procs();
    weft::wait_group w;
    w.go([&] {
      for (unsigned i = 0; i < 100; ++i) weft::set_procs(1 + i % 4);
    });
    for (int i = 0; i < 100; ++i) {
      weft::sleep(0s);
      chan<bool> c{1};
      c.send(true);
      CHECK(c.recv() == true);
    }
    w.wait();
    weft::set_procs(before);
  });
}

TEST_CASE("Go's TestReset: one that is reset fires then, and not before") {
  weft::run([] {
    // Tries longer and longer times, until the machine is fast enough for them.
    auto attempt = [](clock::duration d) -> std::string {
      weft::timer t{2 * d};
      weft::sleep(d);
      if (!t.reset(3 * d)) return "reset of a pending timer returned false";
      auto begin = clock::now();
      weft::sleep(2 * d);
      if (has_value(t.channel()) && clock::now() - begin < 3 * d) return "it fired early";
      weft::sleep(2 * d);
      if (!has_value(t.channel())) return "it did not fire";
      if (t.reset(50ms)) return "reset of one whose value was received returned true";
      return "";
    };
    std::string wrong = "";
    for (auto d = 1ms; d < 1s; d *= 2) {
      wrong = attempt(d);
      if (wrong.empty()) break;
    }
    CHECK(wrong == "");
  });
}

TEST_CASE("Go's TestOverflowSleep: too long never ends and disturbs no other, too short ends at once") {
  weft::run([] {
    std::atomic<bool> woke{false};
    weft::go([&] {
      weft::sleep(big);
      woke = true;
    });
    int which = 0;
    select(on_recv(weft::after(big), [&](std::optional<time_point>) { which = 1; }),
           on_recv(weft::after(25ms), [&](std::optional<time_point>) { which = 2; }));
    CHECK(which == 2);
    auto begin = clock::now();
    weft::sleep(std::chrono::nanoseconds::min());
    CHECK(weft::after(std::chrono::nanoseconds::min()).recv());
    CHECK(clock::now() - begin < late);
    CHECK_FALSE(woke);
  });
}

TEST_CASE("Go's TestOverflowPeriodRuntimeTimer: the next tick lies beyond the end of time, others go on") {
  weft::run([] {
    for (auto period : {big, big - 1ns, big / 2, std::chrono::nanoseconds(1LL << 62)}) {
      weft::ticker k{1ns};
      CHECK(k.channel().recv());
      k.reset(period);
      std::atomic<bool> ticked{false};
      chan<void> over;
      auto waiter = weft::spawn(
          [&] { select(on_recv(k.channel(), [&](std::optional<time_point>) { ticked = true; }), on_recv(over)); });
      weft::timer t{1ns};
      CHECK(gets_value(t.channel()));
      weft::sleep(1ms);
      CHECK_FALSE(ticked);
      over.close();
      waiter.join();
    }
    // The timers of functions are in a heap.
    std::atomic<bool> ran{false};
    auto f = weft::after_func(big - 1ns, [&] { ran = true; });
    auto g = weft::after_func(big, [&] { ran = true; });
    heap_timer t{1ns};
    CHECK(gets_value(t.channel()));
    CHECK_FALSE(ran);
    CHECK(f.stop());
    CHECK(g.stop());
  });
}

TEST_CASE(
    "Go's TestZeroTimerStopPanics, TestZeroTimerResetPanics, TestIssue5745: no timer is an error, no lock stays") {
  weft::run([] {
    weft::ticker k{1h};
    weft::timer t{1h};
    weft::timer other = std::move(t);
    CHECK_THROWS_AS(t.stop(), std::logic_error);      // NOLINT: that is what is tested
    CHECK_THROWS_AS(t.reset(1ms), std::logic_error);  // NOLINT
    CHECK_THROWS_AS(t.channel(), std::logic_error);   // NOLINT
    weft::ticker moved = std::move(k);
    CHECK_THROWS_AS(k.stop(), std::logic_error);  // NOLINT
    moved.stop();
    CHECK(other.stop());
  });
}

// This is also the regression test of Go issue 44868.
TEST_CASE("Go's TestZeroTimer: a million timers without length, all arrive") {
  weft::run([] {
    auto all_arrive = [](auto&& make) {
      // g++ 12's TSan dies when more than some 20,000 goroutines, one after the other, use one channel.
      const int n = under_tsan ? 10000 : fewer(1000000);
      clock::duration worst{};
      for (int i = 0; i < n; ++i) {
        auto begin = clock::now();
        decltype(auto) t = make();
        auto v = t.channel().recv();
        auto now = clock::now();
        if (!v || *v < begin) FAIL("timer " << i << ": no value, or an early one");
        worst = std::max(worst, now - begin);
      }
      CHECK(worst < 2s * slowdown);
    };
    weft::timer again{1h};
    heap_timer again_by_func{1h};
    all_arrive([] { return weft::timer{0s}; });
    all_arrive([&]() -> weft::timer& {
      again.reset(0s);
      return again;
    });
    all_arrive([&]() -> heap_timer& {
      again_by_func.reset(0s);
      return again_by_func;
    });
  });
}

// Go issue 69312: stop returned false, and yet no value could be received.
TEST_CASE("Go's TestStopResult, TestResetResult: the answer says whether there is a value to receive") {
  auto pairs = [](auto stop_or_reset) {
    weft::run([=] {
      const int goroutines = fewer(300);
      std::atomic<int> wrong{0};
      weft::wait_group w;
      for (int g = 0; g < goroutines; ++g) {
        w.go([&] {
          for (int i = 0; i < 20; ++i) {
            weft::timer a{1ms}, b{1ms};
            weft::timer* other = nullptr;
            select(on_recv(a.channel(), [&](std::optional<time_point>) { other = &b; }),
                   on_recv(b.channel(), [&](std::optional<time_point>) { other = &a; }));
            // Nobody has received the other timer's value, so it is always pending, and stop or reset takes it back.
            if (!stop_or_reset(*other) || has_value(other->channel())) ++wrong;
          }
        });
      }
      w.wait();
      CHECK(wrong == 0);
    });
  };
  pairs([](const weft::timer& t) { return t.stop(); });
  pairs([](const weft::timer& t) { return t.reset(1h); });
}

// Go issue 80760: stop returned true, and then reset did, too.
TEST_CASE("Go's TestStopResult: what stop took back, reset does not take back once more") {
  weft::run([] {
    int wrong = 0;
    for (int i = 0; i < fewer(3000); ++i) {
      weft::timer t{std::chrono::microseconds(i % 40)};
      chan<void> over;
      std::atomic<bool> received{false};
      auto waiter = weft::spawn(
          [&] { select(on_recv(t.channel(), [&](std::optional<time_point>) { received = true; }), on_recv(over)); });
      weft::yield();
      compute_for(std::chrono::microseconds((i * 13) % 40));
      bool stopped = t.stop();
      bool again = t.reset(1h);
      wrong += again;
      over.close();
      waiter.join();
      wrong += stopped == received;
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("Go's TestMultiWakeupTicker: many wait for a short ticker, each with a time limit of its own") {
  weft::run([] {
    weft::ticker k{1us};
    std::atomic<int> rounds{0};
    weft::wait_group w;
    for (unsigned g = 0; g < std::max(2U, weft::procs()); ++g) {
      w.go([&] {
        for (int i = 0; i < fewer(5000); ++i) {
          select(on_recv(k.channel()), on_recv(weft::after(1ms)));
          ++rounds;
        }
      });
    }
    w.wait();
    CHECK(rounds > 0);
  });
}

TEST_CASE("Go's TestMultiWakeupTimer: many receive from a timer and reset it") {
  weft::run([] {
    weft::timer t{1ns};
    weft::wait_group w;
    for (unsigned g = 0; g < std::max(2U, weft::procs()); ++g) {
      w.go([&] {
        for (int i = 0; i < fewer(10000); ++i) {
          (void)has_value(t.channel());
          t.reset(1ns);
        }
      });
    }
    w.wait();
    t.reset(1ns);
    CHECK(gets_value(t.channel()));
  });
}

TEST_CASE("Go's TestTicker: as many ticks as time, also after a reset, and none after stop") {
  weft::run([] {
    constexpr auto delta = 2ms;
    weft::ticker k{delta};
    auto begin = clock::now();
    for (int i = 0; i < 5; ++i) CHECK(k.channel().recv());
    k.reset(2 * delta);
    for (int i = 0; i < 5; ++i) CHECK(k.channel().recv());
    k.stop();
    // A late receiver may get two ticks in a row, but the last one was due after all of these.
    CHECK(clock::now() - begin >= 15 * delta);
    weft::sleep(2 * delta);
    CHECK_FALSE(has_value(k.channel()));
  });
}

TEST_CASE("Go's TestTeardown: made, received from, stopped, several times") {
  weft::run([] {
    for (int i = 0; i < 3; ++i) {
      weft::ticker k{2ms};
      CHECK(k.channel().recv());
      k.stop();
    }
  });
}

// Go looked at every timer of the heap for each timer that was made earlier.
TEST_CASE("Go's TestLongAdjustTimers: a heap full of sleepers does not hold up those who talk with time limits") {
  weft::run([] {
    const int count = fewer(5000);
    weft::wait_group w;
    for (int i = 0; i < count; ++i) w.go([] { weft::sleep(10us); });
    for (int i = 0; i < count / 10; ++i) weft::sleep(1us);
    // A queue, implemented by a goroutine of its own.
    chan<int> in, out;
    w.go([=] {
      std::vector<int> q;
      bool open = true;
      while (open || !q.empty()) {
        chan<int> to = q.empty() ? chan<int>{} : out;
        auto take = on_recv(in, [&](std::optional<int> v) {
          if (v) {
            q.push_back(*v);
          } else {
            open = false;
          }
        });
        if (q.empty()) {
          select(take);
        } else {
          select(on_send(to, q.front(), [&] { q.erase(q.begin()); }), take);
        }
      }
    });
    auto begin = clock::now();
    int missing = 0;
    for (int i = 0; i < fewer(2000); ++i) {
      for (int k = 0; k < 20; ++k) in.send(k);
      for (int k = 0; k < 20; ++k) {
        bool got = false;
        select(on_recv(out, [&](std::optional<int> v) { got = v == k; }), on_recv(weft::after(late)));
        missing += !got;
      }
    }
    in.close();
    w.wait();
    CHECK(missing == 0);
    CHECK(clock::now() - begin < 60s);
  });
}

TEST_CASE("Go's TestTimerGC: what nobody holds any more takes no place, stopped or not") {
  weft::run([] {
    auto leaves_nothing = [](auto make) {
      for (int i = 0; i < fewer(10000); ++i) make();
      CHECK(weft::runtime_stats().timers < 10);  // none of them was in a heap
    };
    leaves_nothing([] { (void)weft::after(1h); });
    leaves_nothing([] { weft::timer{1h}; });
    leaves_nothing([] { weft::ticker{1h}; });
    leaves_nothing([] { weft::timer{1h}.stop(); });
    leaves_nothing([] { weft::ticker{1h}.stop(); });
    leaves_nothing([] { weft::timer{0s}; });
  });
}

TEST_CASE("Go's TestTimerGC: a timer whose channel nobody waits for is in no heap, and costs nothing") {
  weft::run([] {
    std::vector<weft::timer> timers;
    std::vector<weft::ticker> tickers;
    for (int i = 0; i < 1000; ++i) {
      timers.emplace_back(1h);
      timers.back().reset(2h);
      tickers.emplace_back(1us);
    }
    CHECK(weft::runtime_stats().timers < 10);
    weft::sleep(2ms);
    for (auto& k : tickers) CHECK(has_value(k.channel()));  // the tick is there for a receiver that asks
    CHECK(weft::runtime_stats().timers < 10);
    // They are in a heap while somebody waits.
    chan<void> over;
    std::vector<weft::task<void>> waiters;
    for (int i = 0; i < 100; ++i) {
      waiters.push_back(weft::spawn(
          [c = timers[static_cast<std::size_t>(i)].channel(), over] { select(on_recv(c), on_recv(over)); }));
    }
    CHECK(eventually([] { return weft::runtime_stats().timers >= 100; }));
    over.close();
    waiters.clear();
    for (auto& t : timers) CHECK(t.stop());
  });
}

namespace {

// testTimerChan of Go's TestChan. In Go, stop and reset of a ticker return nothing, so their answers are not checked
// for one.
template <class Timer>
void test_chan(const Timer& t) {
  constexpr bool is_ticker = std::is_same_v<Timer, weft::ticker>;
  constexpr auto sched = 5ms;
  auto c = t.channel();
  auto wait = [](const chan<bool>& done) {
    bool v;
    return done.recv_for(v, late) == recv_result::value;
  };
  auto is_done = [](const chan<bool>& done) {
    bool v;
    return done.try_recv(v) == recv_result::value;
  };

  t.stop();  // from here on, the timer is in no heap until a goroutine waits
  CHECK_FALSE(has_value(c));
  t.reset(10000s);
  CHECK_FALSE(has_value(c));
  t.reset(1ns);
  weft::sleep(sched);
  CHECK(c.size() == 0);
  CHECK(c.capacity() == 0);
  CHECK(has_value(c));

  weft::sleep(sched);  // a ticker's next tick has come
  t.reset(10000s);
  CHECK_FALSE(has_value(c));

  // Now the timer is in a heap, because a goroutine waits.
  chan<bool> done{2};
  weft::go([=] {
    (void)c.recv();
    done.send(true);
  });
  weft::sleep(sched);
  CHECK_FALSE(is_done(done));
  t.reset(20000s);
  weft::sleep(sched);
  CHECK_FALSE(is_done(done));
  t.reset(1ns);
  CHECK(wait(done));
  if (is_ticker) {
    CHECK(gets_value(c));
  } else {
    CHECK_FALSE(has_value(c));
  }
  t.stop();
  CHECK_FALSE(has_value(c));

  // Two goroutines wait with select; a timer wakes one of them.
  t.reset(10000s);
  chan<void> stop;
  weft::wait_group w;
  for (int i = 0; i < 2; ++i) {
    w.go([=] { select(on_recv(c, [&](std::optional<time_point>) { done.send(true); }), on_recv(stop)); });
  }
  weft::sleep(sched);
  CHECK_FALSE(is_done(done));
  t.reset(sched / 2);
  CHECK(wait(done));
  t.stop();
  stop.close();
  w.wait();
  if (!is_ticker) CHECK_FALSE(is_done(done));

  // Two goroutines wait for a stopped timer.
  chan<void> enough;
  std::atomic<int> unexpected{0};
  for (int i = 0; i < 2; ++i) {
    w.go([=, &unexpected] { select(on_recv(c, [&](std::optional<time_point>) { ++unexpected; }), on_recv(enough)); });
  }
  weft::sleep(sched);
  enough.close();
  w.wait();
  CHECK(unexpected == 0);

  // stop and reset take back what was due and not received (proposal 37196).
  t.reset(1ns);
  weft::sleep(sched);
  if constexpr (is_ticker) {
    t.stop();
  } else {
    CHECK(t.stop());
  }
  CHECK_FALSE(has_value(c));
  t.reset(1h);
  CHECK_FALSE(has_value(c));
  if constexpr (is_ticker) {
    t.reset(1ns);
  } else {
    CHECK(t.reset(1ns));
  }
  CHECK(gets_value(c));
  weft::sleep(sched);
  CHECK(has_value(c) == is_ticker);
  if constexpr (is_ticker) {
    t.reset(1h);
  } else {
    CHECK_FALSE(t.reset(1h));
  }
  CHECK_FALSE(has_value(c));
}

}  // namespace

TEST_CASE("Go's TestChan: stop and reset of a timer and of a ticker, in a heap and outside") {
  weft::run([] {
    test_chan(weft::timer{10000s});
    test_chan(weft::ticker{10000s});
  });
}

TEST_CASE("Go's TestAfterTimes, TestTickTimes: who comes late receives the instant that was due") {
  weft::run([] {
    auto begin = clock::now();
    auto c = weft::after(2ms);
    weft::ticker k{2ms};
    auto made = clock::now();
    weft::sleep(30ms);
    for (auto v : {*c.recv(), *k.channel().recv()}) {
      CHECK(v >= begin + 2ms);
      CHECK(v <= made + 2ms);
    }
  });
}

// runtime/proc_test.go
TEST_CASE("Go's TestTimerFairness, TestTimerFairness2: those who talk without end notice their timer") {
  weft::run([] {
    chan<void> done;
    chan<bool> c;
    weft::wait_group w;
    for (int i = 0; i < 2; ++i) {
      w.go([=] {
        for (bool over = false; !over;) select(on_send(c, true), on_recv(done, [&](bool) { over = true; }));
      });
    }
    auto limit = weft::after(20ms);
    for (bool over = false; !over;) {
      select(on_recv(c), on_recv(limit, [&](std::optional<time_point>) { over = true; }));
    }
    done.close();
    w.wait();

    for (int i = 0; i < 2; ++i) {
      w.go([=] {
        auto mine = weft::after(20ms);
        for (bool over = false; !over;) {
          weft::blocking([] { (void)::getppid(); });  // a short system call
          select(on_send(c, true), on_recv(c), on_recv(mine, [&](std::optional<time_point>) { over = true; }));
        }
      });
    }
    w.wait();
  });
}

// --- what ends while its timer is in a heap

TEST_CASE("the timer of a wait that ended otherwise never fires, also from another P's heap") {
  weft::run([] {
    // Each wait ends by a value from another goroutine, mostly on another P, just before or after its time limit. The
    // stack frame with the waiter is gone at once, and the next wait uses the same memory.
    const int n = fewer(3000);
    std::atomic<int> values{0}, timeouts{0}, wrong{0};
    weft::wait_group w;
    for (int pair = 0; pair < 4; ++pair) {
      chan<int> c{1};
      w.go([=, &values, &timeouts, &wrong] {
        for (int i = 0; i < n; ++i) {
          auto begin = clock::now();
          int v;
          auto limit = std::chrono::microseconds(i % 30);
          if (c.recv_for(v, limit) == recv_result::value) {
            ++values;
          } else {
            ++timeouts;
            wrong += clock::now() - begin < limit;
          }
        }
        c.close();
      });
      w.go([=] {
        try {
          for (int i = 0;; ++i) {
            (void)c.try_send(i);
            weft::sleep(std::chrono::microseconds(i % 20));
            if (c.send_for(i, 1h)) continue;
          }
        } catch (const weft::channel_closed&) {}
      });
    }
    w.wait();
    CHECK(values + timeouts == 4 * n);
    CHECK(wrong == 0);
  });
}

TEST_CASE("run() ends while goroutines sleep: their timers are gone with them") {
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> woke{0};
    weft::run([&] {
      for (int i = 0; i < 200; ++i) {
        weft::go([&, i] {
          weft::sleep(std::chrono::milliseconds(3 + i % 5));
          ++woke;
        });
      }
      weft::sleep(1ms);
    });
    int at_end = woke;
    weft::run([&] {
      CHECK(weft::runtime_stats().timers == 0);
      weft::sleep(10ms);
      CHECK(woke == at_end);
    });
  }
}
