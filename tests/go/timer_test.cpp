// What Go's timers promise (time/sleep_test.go, time/tick_test.go; the promises of Go 1.23), one test case each. Those
// of Go's own tests that are not here are in timer_go_test.cpp, under their names.
//
// Kills these mutants (tests/mutants): sleep-crowd-too-late, sleep-crowd-apart, channel-timer-*,
// after-func-stays-in-heap, poll-is-late-by-its-length.

#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <malloc.h>
#include <memory>
#include <random>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>
#include <weft/weft.hpp>

using namespace weft::test;
using weft::chan;
using weft::recv_result;
using weft::time_point;

namespace {

constexpr auto never = std::chrono::hours::max();

// True if nothing comes out of the channel, at once and within `d`.
template <class Channel>
bool silent(const Channel& c, clock::duration d = 3ms) {
  time_point v;
  return c.recv_for(v, d) == recv_result::empty;
}

// Puts the timer into a heap: a channel's timer goes there when a goroutine is about to wait for it, and stays there
// when the goroutine gives up.
template <class Timer>
void put_into_heap(const Timer& t) {
  time_point v;
  (void)t.channel().recv_for(v, 1us);
}

// Includes stopped timers that were not cleaned out yet.
std::uint64_t timers_in_heaps() { return weft::runtime_stats().timers; }

}  // namespace

// --- sleep

// time's TestSleep
TEST_CASE("sleep: never early") {
  weft::run([] {
    for (auto d : std::initializer_list<clock::duration>{1ns, 1us, 10us, 50us, 100us, 999us, 1ms, 5ms, 20ms}) {
      auto begin = clock::now();
      weft::sleep(d);
      CHECK(clock::now() - begin >= d);
    }
    auto until = clock::now() + 3ms;
    weft::sleep_until(until);
    CHECK(clock::now() >= until);
    // Durations of any kind, rounded up.
    auto begin = clock::now();
    weft::sleep(std::chrono::duration<double, std::milli>(1.5));
    CHECK(clock::now() - begin >= 1500us);
  });
}

// time's TestOverflowSleep, the negative half
TEST_CASE("sleep: zero and negative durations and past points return at once") {
  weft::run([] {
    auto begin = clock::now();
    for (int i = 0; i < 1000; ++i) {
      weft::sleep(0s);
      weft::sleep(-1h);
      weft::sleep(std::chrono::hours::min());
      weft::sleep_until(begin);
      weft::sleep_until(time_point::min());
    }
    CHECK(clock::now() - begin < late);
  });
}

TEST_CASE("sleep: those who sleep shorter wake first") {
  weft::run([] {
    constexpr int n = 20;
    chan<int> woke{n};
    auto begin = clock::now();
    for (int i = n; i-- > 0;) {
      weft::go([=] {
        weft::sleep_until(begin + 10ms + i * 2ms);
        woke.send(i);
      });
    }
    std::vector<int> order;
    for (int i = 0; i < n; ++i) order.push_back(*woke.recv());
    // Goroutines that are due during one stall of the machine wake together, in any order.
    if (clock::now() - begin < 10ms + n * 2ms) {
      int last = 0;
      for (int now : order) {
        CHECK(now > last - 10);
        last = std::max(last, now);
      }
    }
  });
}

TEST_CASE("sleep: a thousand goroutines wake at one instant") {
  weft::run([] {
    const int n = fewer(1000);
    auto at = clock::now() + 20ms;
    std::atomic<int> early{0};
    weft::wait_group w;
    for (int i = 0; i < n; ++i) {
      w.go([=, &early] {
        weft::sleep_until(at);
        early += clock::now() < at;
      });
    }
    w.wait();
    CHECK(early == 0);
  });
}

// time's TestOverflowSleep
TEST_CASE("sleep: many that sleep long wake together") {
  constexpr int n = 5000;
  weft::run([] {
    auto begin = clock::now();
    std::atomic<int> early{0};
    weft::wait_group wg;
    for (int i = 0; i < n; ++i) {
      wg.go([&, i] {
        weft::sleep_until(begin + i * 20us);
        auto due = clock::now() + 200ms;
        weft::sleep(200ms);
        if (clock::now() < due) ++early;
      });
    }
    weft::sleep_until(begin + 110ms);
    auto polls = weft::runtime_stats().polls;
    wg.wait();
    CHECK(weft::runtime_stats().polls - polls < n / 5);  // the last 100 ms in steps of 1 ms
    CHECK(early == 0);
  });
}

TEST_CASE("sleep: many that sleep shortly, again and again, wake together") {
  constexpr int n = 500, times = 20;
  weft::run([] {
    std::atomic<int> early{0};
    weft::wait_group wg;
    auto polls = weft::runtime_stats().polls;
    for (int i = 0; i < n; ++i) {
      wg.go([&, length = 8ms + i * 7us] {
        for (int k = 0; k < times; ++k) {
          auto due = clock::now() + length;
          weft::sleep(length);
          early += clock::now() < due;
        }
      });
    }
    wg.wait();
    CHECK(weft::runtime_stats().polls - polls < n * times / 4);  // 200 ms in steps of half a millisecond
    CHECK(early == 0);
  });
}

TEST_CASE("sleep: many that sleep long wake later by 1/128 at most") {
  constexpr std::size_t n = 3000;
  weft::run([] {
    // The median: on a loaded machine some are later.
    auto median = [] {
      std::vector<clock::duration> lateness(n);
      auto begin = clock::now();
      weft::wait_group w;
      for (std::size_t i = 0; i < n; ++i) {
        w.go([&, i] {
          weft::sleep_until(begin + i * 40us);
          auto due = clock::now() + 200ms;
          weft::sleep(200ms);
          lateness[i] = clock::now() - due;
        });
      }
      w.wait();
      std::nth_element(lateness.begin(), lateness.begin() + n / 2, lateness.end());
      return lateness[n / 2];
    };
    constexpr auto most = 15ms * slowdown;
    auto least = median();
    for (int attempt = 0; attempt < 4 && least >= most; ++attempt) least = std::min(least, median());
    INFO("median " << least.count() << " ns");
    CHECK(least < most);
  });
}

TEST_CASE("sleep: a duration too long to fit never ends") {
  weft::run([] {
    std::atomic<int> woke{0};
    weft::go([&] {
      weft::sleep(never);
      ++woke;
    });
    weft::go([&] {
      weft::sleep(std::chrono::nanoseconds::max());
      ++woke;
    });
    weft::go([&] {
      weft::sleep_until(time_point::max());
      ++woke;
    });
    weft::go([&] {
      weft::sleep(std::chrono::duration<double>(std::numeric_limits<double>::infinity()));
      ++woke;
    });
    weft::sleep(5ms);
    CHECK(woke == 0);
  });
}

TEST_CASE("sleep: a thread that weft did not start sleeps as a thread") {
  weft::run([] {
    std::atomic<bool> ok{false};
    std::thread t([&] {
      auto begin = clock::now();
      weft::sleep(3ms);
      ok = clock::now() - begin >= 3ms;
    });
    weft::blocking([&] { t.join(); });
    CHECK(ok);
  });
}

TEST_CASE("sleep: it is late by microseconds, not milliseconds") {
  weft::run([] {
    std::vector<clock::duration> lateness;
    for (int i = 0; i < 60; ++i) {
      auto until = clock::now() + 300us;
      weft::sleep_until(until);
      lateness.push_back(clock::now() - until);
    }
    std::sort(lateness.begin(), lateness.end());
    INFO("median " << lateness[30].count() << " ns");
    CHECK(lateness[30] < 500us * slowdown);
  });
}

// --- after

// time's TestAfter
TEST_CASE("after: one value, the instant that was due") {
  weft::run([] {
    auto before = clock::now();
    auto c = weft::after(3ms);
    auto after = clock::now();
    auto v = c.recv();
    auto now = clock::now();
    REQUIRE(v);
    CHECK(*v >= before + 3ms);
    CHECK(*v <= after + 3ms);
    CHECK(now >= *v);
    CHECK(silent(c));
  });
}

// time's TestAfterQueuing
TEST_CASE("after: several come in the order of their times") {
  weft::run([] {
    // Compares the values: two timers that are late at once may be received from in any order.
    std::vector<weft::task<time_point>> all;
    for (int slot : {5, 3, 6, 6, 6, 1}) {
      all.push_back(weft::spawn([c = weft::after(slot * 5ms)] { return *c.recv(); }));
    }
    std::vector<time_point> at;
    for (auto& t : all) at.push_back(t.join());
    CHECK(at[5] < at[1]);
    CHECK(at[1] < at[0]);
    for (int i : {2, 3, 4}) CHECK(at[0] < at[static_cast<std::size_t>(i)]);
  });
}

TEST_CASE("after: zero and negative at once, too long never, and dropping the channel is fine") {
  weft::run([] {
    for (clock::duration d : {clock::duration(0s), clock::duration(-5s), clock::duration::min()}) {
      auto begin = clock::now();
      auto v = weft::after(d).recv();
      REQUIRE(v);
      CHECK(*v >= begin);
    }
    CHECK(silent(weft::after(never)));
    for (int i = 0; i < 1000; ++i) {
      (void)weft::after(std::chrono::microseconds(i));
      (void)weft::after(never);
      (void)weft::after(1h);
    }
    weft::sleep(2ms);
  });
}

// --- timers

TEST_CASE("timer: stop of a pending one is true, then it never fires") {
  weft::run([] {
    weft::timer t{2ms};
    CHECK(t.stop());
    CHECK_FALSE(t.stop());
    CHECK(silent(t.channel(), 6ms));
    CHECK_FALSE(t.stop());
  });
}

TEST_CASE("timer: stop after its value was received is false, before it was received true and takes it back") {
  weft::run([] {
    weft::timer received{1ms};
    CHECK(received.channel().recv().has_value());
    CHECK_FALSE(received.stop());

    weft::timer fired{1ms};
    weft::sleep(4ms);
    CHECK(fired.stop());
    CHECK(silent(fired.channel()));
    CHECK_FALSE(fired.stop());
  });
}

// time's TestReset
TEST_CASE("timer: reset in each state") {
  weft::run([] {
    weft::timer pending{1h};
    CHECK(pending.reset(1ms));
    CHECK(pending.channel().recv().has_value());

    CHECK_FALSE(pending.reset(1ms));  // its value was received
    weft::sleep(4ms);
    auto before = clock::now();
    CHECK(pending.reset(2ms));  // fired, not received: the old value is gone
    auto v = pending.channel().recv();
    REQUIRE(v);
    CHECK(*v >= before + 2ms);

    CHECK_FALSE(pending.reset(1h));
    CHECK(pending.stop());
    CHECK_FALSE(pending.reset(1ms));  // it was stopped
    CHECK(pending.channel().recv().has_value());
    CHECK(silent(pending.channel()));

    CHECK_FALSE(pending.reset(never));
    CHECK(pending.reset(0s));
    CHECK(pending.channel().recv().has_value());
    before = clock::now();
    CHECK_FALSE(pending.reset(-1s));
    v = pending.channel().recv();
    REQUIRE(v);
    CHECK(*v >= before);
  });
}

// A small version of time's TestTimerModifiedEarlier.
TEST_CASE("timer: moved earlier, it fires at the new time, though another one comes before the old one") {
  weft::run([] {
    weft::timer other{30min}, t{1h};
    put_into_heap(other);
    put_into_heap(t);
    CHECK(timers_in_heaps() >= 2);
    auto begin = clock::now();
    t.reset(2ms);
    CHECK(t.channel().recv().has_value());
    CHECK(clock::now() - begin < late);
    // When it is moved later again and again, it fires once, at the last time.
    begin = clock::now();
    t.reset(5ms);
    put_into_heap(t);
    for (int i = 0; i < 20; ++i) t.reset(5ms + i * 100us);
    auto v = t.channel().recv();
    REQUIRE(v);
    CHECK(*v >= begin + 6900us);
    CHECK(silent(t.channel()));
  });
}

// A promise of Go 1.23.
TEST_CASE("timer: after stop or reset no value of the earlier setting is received") {
  weft::run([] {
    weft::timer t{1h};
    std::mt19937 random(1);
    int stale = 0;
    for (int i = 0; i < fewer(3000); ++i) {
      auto d = std::chrono::microseconds(random() % 20);
      t.reset(1h);
      put_into_heap(t);  // it fires from there, maybe while it is stopped or reset
      t.reset(d);
      compute_for(std::chrono::microseconds(random() % 25));
      time_point v;
      if (i % 2 == 0) {
        t.stop();
        stale += t.channel().try_recv(v) != recv_result::empty;
      } else {
        auto before = clock::now();
        t.reset(30us);
        if (!t.channel().recv(v)) break;
        stale += v < before + 30us;
      }
    }
    CHECK(stale == 0);
  });
}

// time's TestStopResult, with a receiver that races
TEST_CASE("timer: stop says true if and only if the value is not received") {
  weft::run([] {
    int wrong = 0;
    for (int i = 0; i < fewer(1000); ++i) {
      weft::timer t{std::chrono::microseconds(i % 50)};
      std::atomic<bool> got{false}, stop{false};
      auto receiver = weft::spawn([&] {
        time_point v;
        while (!stop && !got) got = t.channel().recv_for(v, 100us) == recv_result::value;
      });
      compute_for(std::chrono::microseconds((i * 7) % 50));
      bool stopped = t.stop();
      weft::sleep(20us);
      stop = true;
      receiver.join();
      wrong += stopped == got;
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("timer: many wait for one value, one gets it") {
  weft::run([] {
    weft::timer t{3ms};
    std::atomic<int> got{0};
    weft::wait_group w;
    for (int i = 0; i < 10; ++i) {
      w.go([&] {
        time_point v;
        got += t.channel().recv_for(v, 20ms) == recv_result::value;
      });
    }
    w.wait();
    CHECK(got == 1);
  });
}

TEST_CASE("timer: who looks at the channel does not overtake who waits for it") {
  weft::run(
      [] {
        for (int i = 0; i < 20; ++i) {
          weft::timer t{1h};
          auto waiter = weft::spawn([c = t.channel()] { return c.recv().has_value(); });
          CHECK(eventually([] { return timers_in_heaps() == 1; }));
          t.reset(100us);
          compute_for(200us);  // the only P is busy, so nobody has fired the timer
          time_point v;
          bool overtaken = t.channel().try_recv(v) == recv_result::value;
          if (overtaken) t.reset(0s);
          CHECK_FALSE(overtaken);
          CHECK(waiter.join());
        }
      },
      {.procs = 1});
}

TEST_CASE("timer: one that never fires is in no heap, although somebody waits") {
  weft::run([] {
    weft::timer t{never};
    put_into_heap(t);
    CHECK(eventually([] { return timers_in_heaps() == 0; }));
    t.reset(1h);
    put_into_heap(t);
    CHECK(eventually([] { return timers_in_heaps() == 1; }));
    t.reset(never);
    CHECK(eventually([] { return timers_in_heaps() == 0; }));
    CHECK(t.stop());
  });
}

// time's TestChan checks this, too.
TEST_CASE("timer: its channel has size and capacity 0 in each state") {
  weft::run([] {
    weft::timer t{1ms};
    weft::ticker k{1ms};
    auto tc = t.channel();
    auto kc = k.channel();
    CHECK(tc.size() == 0);
    weft::sleep(4ms);
    CHECK(tc.size() == 0);
    CHECK(tc.capacity() == 0);
    CHECK(kc.size() == 0);
    CHECK(kc.capacity() == 0);
    CHECK(weft::after(0s).capacity() == 0);
    CHECK(tc.recv().has_value());
    CHECK(kc.recv().has_value());
  });
}

TEST_CASE("timer: copies of the handle share it, and the last one that goes stops it") {
  weft::run([] {
    auto c = [] {
      weft::timer t{2ms};
      weft::timer copy = t;
      CHECK(copy.channel() == t.channel());
      CHECK(copy.stop());
      CHECK_FALSE(t.stop());
      t.reset(2ms);
      return t.channel();
    }();
    CHECK(silent(c, 6ms));  // no handle is left

    std::optional<weft::timer> first{std::in_place, 2ms};
    weft::timer second = *first;
    first.reset();
    CHECK(second.channel().recv().has_value());

    weft::timer moved = std::move(second);
    CHECK_THROWS_AS(second.stop(), std::logic_error);  // NOLINT: that is what is tested
    CHECK_FALSE(moved.stop());
    moved = weft::timer{1ms};
    CHECK(moved.channel().recv().has_value());
  });
}

TEST_CASE("timer: destroyed while pending, fired, or in another P's heap") {
  weft::run([] {
    for (int round = 0; round < fewer(40); ++round) {
      std::vector<weft::timer> timers;
      std::vector<weft::ticker> tickers;
      for (int i = 0; i < 50; ++i) {
        timers.emplace_back(i % 2 == 0 ? clock::duration(1h) : std::chrono::microseconds(i * 3));
        tickers.emplace_back(i % 2 == 0 ? clock::duration(1h) : std::chrono::microseconds(i + 5));
        put_into_heap(timers.back());
        put_into_heap(tickers.back());
      }
      CHECK(timers_in_heaps() >= 50);
      weft::yield();
      weft::spawn([ts = std::move(timers)]() mutable {
        weft::sleep(60us);
        ts.clear();
      }).join();
      std::thread([ks = std::move(tickers)]() mutable { ks.clear(); }).join();
    }
  });
}

TEST_CASE("timer: used from threads that weft did not start") {
  weft::run([] {
    chan<int> results{4};
    std::thread thread([=] {
      weft::timer t{2ms};
      results.send(t.channel().recv().has_value());
      results.send(!t.reset(1h));
      results.send(t.stop());
      weft::ticker k{1ms};
      results.send(k.channel().recv().has_value());
    });
    for (int i = 0; i < 4; ++i) CHECK(results.recv() == 1);
    weft::blocking([&] { thread.join(); });
  });
}

TEST_CASE("timer: without a runtime it is an error") {
  CHECK_THROWS_AS(weft::timer(1ms), std::logic_error);
  CHECK_THROWS_AS(weft::ticker(1ms), std::logic_error);
  CHECK_THROWS_AS(weft::after(1ms), std::logic_error);
  CHECK_THROWS_AS(weft::after_func(1ms, [] {}), std::logic_error);
}

TEST_CASE("timer: a handle that outlives its run() may be stopped and destroyed") {
  std::optional<weft::timer> t;
  std::optional<weft::ticker> k;
  std::optional<weft::func_timer> f;
  weft::run([&] {
    t.emplace(1h);
    k.emplace(1ms);
    f.emplace(weft::after_func(1h, [] {}));
    weft::sleep(3ms);
  });
  t->stop();
  f->stop();
  weft::run([&] {
    t->reset(1ms);
    CHECK(t->channel().recv().has_value());
  });
  t.reset();
  k.reset();
  f.reset();
}

// --- tickers

TEST_CASE("ticker: ticks on a grid that does not drift, with the instants that were due") {
  weft::run([] {
    auto before = clock::now();
    weft::ticker k{2ms};
    auto after = clock::now();
    time_point first{};
    for (int i = 1; i <= 10; ++i) {
      auto v = k.channel().recv();
      REQUIRE(v);
      CHECK(clock::now() >= *v);
      if (i == 1) {
        first = *v;
        CHECK(first >= before + 2ms);
        CHECK(first <= after + 2ms);
      }
      CHECK((*v - first) % 2ms == 0ns);
    }
  });
}

TEST_CASE("ticker: a slow receiver misses ticks, one is pending, and then the grid goes on") {
  weft::run([] {
    weft::ticker k{2ms};
    auto first = *k.channel().recv();
    weft::sleep(11ms);
    auto pending = *k.channel().recv();
    // The oldest tick that was not received: mostly the next one. If this process stood still, other ticks were
    // skipped.
    CHECK(pending > first);
    CHECK((pending - first) % 2ms == 0ns);
    time_point v;
    // The next tick is ahead of now, apart from at most one that came in between.
    auto now = clock::now();
    CHECK(k.channel().recv(v));
    CHECK(v > now - 2ms);
    CHECK((v - first) % 2ms == 0ns);
  });
}

TEST_CASE("ticker: no tick after stop, also none that was pending; stop does not close the channel") {
  weft::run([] {
    weft::ticker k{1ms};
    weft::sleep(3ms);
    CHECK(k.stop());
    CHECK(silent(k.channel(), 5ms));
    CHECK(!k.stop());
    CHECK(!k.reset(1ms));
    CHECK(k.channel().recv().has_value());
  });
}

TEST_CASE("ticker: reset starts a new grid, one period from now") {
  weft::run([] {
    weft::ticker k{1h};
    auto before = clock::now();
    CHECK(k.reset(3ms));
    auto v = *k.channel().recv();
    CHECK(v >= before + 3ms);
    auto w = *k.channel().recv();
    CHECK(w > v);
    CHECK((w - v) % 3ms == 0ms);  // if the machine stood still, ticks are missed
    weft::sleep(5ms);             // a tick of the old grid is pending
    before = clock::now();
    k.reset(2ms);
    CHECK(*k.channel().recv() >= before + 2ms);
    k.reset(never);
    CHECK(silent(k.channel(), 5ms));
  });
}

TEST_CASE("ticker: it leaves its heap at the first tick that nobody takes") {
  weft::run([] {
    weft::ticker k{1ms};
    CHECK(k.channel().recv().has_value());
    CHECK(eventually([] { return timers_in_heaps() == 0; }));
    CHECK(k.channel().recv().has_value());
  });
}

// time's TestNewTickerLtZeroDuration, TestTickerResetLtZeroDuration
TEST_CASE("ticker: a period that is not positive is an invalid argument") {
  weft::run([] {
    CHECK_THROWS_AS(weft::ticker(0s), std::invalid_argument);
    CHECK_THROWS_AS(weft::ticker(-1ms), std::invalid_argument);
    weft::ticker k{1h};
    CHECK_THROWS_AS(k.reset(0s), std::invalid_argument);
    CHECK_THROWS_AS(k.reset(-1ns), std::invalid_argument);
    CHECK(silent(k.channel(), 1ms));
  });
}

// time's TestTickerStress
TEST_CASE("ticker: a very short period does not stop the world") {
  weft::run([] {
    weft::ticker k{1ns};
    for (int i = 0; i < 200; ++i) {
      CHECK(k.channel().recv().has_value());
      weft::yield();
    }
    weft::sleep(2ms);
    k.stop();
  });
}

TEST_CASE("ticker: many at once, each on its own grid") {
  weft::run([] {
    std::atomic<int> wrong{0};
    weft::wait_group w;
    for (int g = 1; g <= 20; ++g) {
      w.go([=, &wrong] {
        auto period = std::chrono::microseconds(200 + 37 * g);
        weft::ticker k{period};
        auto first = *k.channel().recv();
        for (int i = 0; i < 10; ++i) {
          auto v = *k.channel().recv();
          wrong += v <= first || (v - first) % period != 0ns;
        }
      });
    }
    w.wait();
    CHECK(wrong == 0);
  });
}

TEST_CASE("timer: a goroutine of a former run() that waits for the channel is nobody's hindrance") {
  std::optional<weft::timer> t;
  std::optional<weft::ticker> k;
  weft::run([&] {
    t.emplace(10ms);
    k.emplace(5ms);
    weft::go([&] { t->channel().recv(); });
    weft::go([&] { k->channel().recv(); });
    weft::yield();
  });
  weft::run([&] {
    time_point v;
    CHECK(eventually([&] { return t->channel().try_recv(v) == recv_result::value; }));
    CHECK(eventually([&] { return k->channel().try_recv(v) == recv_result::value; }));
  });
}

TEST_CASE("timer: threads that wait for channels get their values also when the run() has ended") {
  std::vector<std::thread> threads;
  std::atomic<int> waiting{0}, received{0};
  weft::run([&] {
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, c = weft::after(30ms)] {
        ++waiting;
        received += c.recv().has_value();
      });
      threads.emplace_back([&, c = weft::after(30ms), nobodys = chan<int>()] {
        ++waiting;
        weft::select(weft::on_recv(nobodys, [](std::optional<int>) {}),
                     weft::on_recv(c, [&](std::optional<time_point> v) { received += v.has_value(); }));
      });
    }
    threads.emplace_back([&] {
      weft::ticker k(10ms);
      auto c = k.channel();
      ++waiting;
      for (int i = 0; i < 5; ++i) received += c.recv().has_value();
    });
    threads.emplace_back([&, c = weft::after(5ms)] {
      ++waiting;
      time_point v;
      received += c.recv_for(v, 5s) == recv_result::value;
    });
    while (waiting < 6) weft::sleep(100us);
  });
  for (auto& t : threads) t.join();
  CHECK(received == 10);
}

// --- durations

TEST_CASE("durations: those of odd periods do not overflow before their nanoseconds do") {
  using weft::detail::never_ns;
  using weft::detail::to_ns;
  using acpi = std::chrono::duration<std::int64_t, std::ratio<1, 3579545>>;
  using samples = std::chrono::duration<std::int64_t, std::ratio<1, 44100>>;
  CHECK(to_ns(acpi(3579545LL * 4 * 3600)) == 4LL * 3600 * 1'000'000'000);
  CHECK(to_ns(samples(44100LL * 86400 * 300)) == 86400LL * 300 * 1'000'000'000);
  CHECK(to_ns(samples(1)) == 22676);  // rounded up
  CHECK(to_ns(samples(-1)) == -22675);
  CHECK(to_ns(samples::max()) == never_ns);
  CHECK(to_ns(samples::min()) == -never_ns);
  CHECK(to_ns(std::chrono::duration<std::uint64_t>(1)) == 1'000'000'000);
  CHECK(to_ns(std::chrono::duration<std::uint64_t>::max()) == never_ns);
  CHECK(to_ns(std::chrono::duration<std::int8_t, std::milli>(-7)) == -7'000'000);
}

// --- after_func

namespace {
// The bytes that malloc has taken for all threads (mallinfo2 knows the main thread's only).
std::size_t taken_from_system() {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* to = ::open_memstream(&text, &size);
  ::malloc_info(0, to);
  std::fclose(to);
  const std::string_view all(text, size), key = "<system type=\"current\" size=\"";
  const std::size_t total = std::strtoull(text + all.rfind(key) + key.size(), nullptr, 10);  // the last one is the sum
  std::free(text);
  return total;
}
}  // namespace

TEST_CASE("func_timer: an empty handle") {
  weft::run([] {
    weft::func_timer none;
    CHECK_FALSE(none.stop());
    CHECK_FALSE(none.stop_and_wait());
    CHECK_THROWS_AS(none.reset(1ms), std::logic_error);
    none = weft::after_func(1h, [] {});
    CHECK(none.stop());
  });
}

TEST_CASE("after_func: nothing is left of a call whose function cannot be copied") {
  static int alive = 0;
  struct alignas(64) not_copied {
    not_copied() { ++alive; }
    not_copied(const not_copied&) { throw std::runtime_error("no copy"); }
    ~not_copied() { --alive; }
    void operator()() const {}
    char room[4096] = {};  // more than what weft keeps blocks for
  };
  weft::run([] {
    const not_copied f;
    const std::size_t before = taken_from_system();
    for (int i = 0; i < 1000; ++i) CHECK_THROWS_AS(weft::after_func(1ms, f), std::runtime_error);
    CHECK(taken_from_system() < before + 1024 * 1024);
  });
  CHECK(alive == 0);
}

TEST_CASE("after_func: runs in a goroutine of its own, not early") {
  weft::run([] {
    chan<std::uint64_t> id{1};
    auto begin = clock::now();
    weft::after_func(2ms, [=] { id.send(weft::this_goroutine::id()); });  // dropping the handle does not cancel it
    auto other = id.recv();
    CHECK(clock::now() - begin >= 2ms);
    CHECK(other != weft::this_goroutine::id());
    CHECK(other != 0U);
  });
}

TEST_CASE("after_func: what it runs may block, sleep and panic into its own catch, others go on") {
  weft::run([] {
    chan<int> c, done{4};
    weft::after_func(0s, [=] {
      try {
        throw c.recv();
      } catch (const std::optional<int>& v) {
        done.send(*v);
      }
    });
    weft::after_func(0s, [=] {
      weft::sleep(1ms);
      c.send(3);
    });
    CHECK(done.recv() == 3);
  });
}

// time's TestAfterFunc
TEST_CASE("after_func: each sets the next") {
  weft::run([] {
    chan<int> done{1};
    struct state {
      int left = 10;
      chan<int> done;
      void operator()() {
        if (--left >= 0) {
          weft::after_func(0s, *this);
        } else {
          done.send(1);
        }
      }
    };
    weft::after_func(0s, state{10, done});
    CHECK(done.recv() == 1);
  });
}

TEST_CASE("after_func: stop and reset in each state") {
  weft::run([] {
    std::atomic<int> ran{0};
    auto t = weft::after_func(1h, [&] { ++ran; });
    CHECK(t.stop());
    CHECK_FALSE(t.stop());
    CHECK_FALSE(t.reset(1ms));
    CHECK(eventually([&] { return ran == 1; }));
    CHECK_FALSE(t.stop());
    CHECK_FALSE(t.reset(1h));
    CHECK(t.reset(1ms));
    CHECK(eventually([&] { return ran == 2; }));
    CHECK_FALSE(t.reset(2ms));
    CHECK(t.stop());
    weft::sleep(5ms);
    CHECK(ran == 2);
    CHECK_FALSE(t.reset(never));
    CHECK(t.stop());
  });
}

TEST_CASE("after_func: runs of one timer may overlap when it is reset") {
  weft::run([] {
    std::atomic<int> inside{0}, most{0};
    chan<void> leave;
    auto t = weft::after_func(0s, [&, leave] {
      int n = ++inside;
      int m = most;
      while (n > m && !most.compare_exchange_weak(m, n)) {}
      leave.recv();
      --inside;
    });
    CHECK(eventually([&] { return inside == 1; }));
    t.reset(0s);
    CHECK(eventually([&] { return inside == 2; }));
    leave.close();
    CHECK(t.stop_and_wait() == false);
    CHECK(inside == 0);
    CHECK(most == 2);
  });
}

TEST_CASE("after_func: stop_and_wait waits for a running function, and destroys nothing under it") {
  weft::run([] {
    for (int i = 0; i < fewer(300); ++i) {
      auto data = std::make_unique<std::atomic<int>>(0);
      auto t = weft::after_func(std::chrono::microseconds(i % 20), [p = data.get()] {
        *p = 1;
        weft::yield();
        *p = 2;
      });
      compute_for(std::chrono::microseconds(i % 30));
      bool stopped = t.stop_and_wait();
      int at = *data;
      if (at != (stopped ? 0 : 2)) FAIL("stopped: " << stopped << ", but the function is at " << at);
      data.reset();
    }
  });
}

TEST_CASE("after_func: nobody waits for a function whose run() is over") {
  std::optional<weft::func_timer> t;
  std::thread other;
  weft::run([&] {
    weft::chan<int> begun;
    t = weft::after_func(0ms, [=] {
      begun.send(1);
      weft::sleep(1h);
    });
    begun.recv();
    other = std::thread([&] { CHECK(!t->stop_and_wait()); });
    weft::sleep(5ms);  // by now the thread waits
  });
  other.join();
  weft::run([&] { CHECK(!t->stop_and_wait()); });
}

TEST_CASE("after_func: stop_and_wait ends one that sets itself again, also before it has run to its end") {
  weft::run([] {
    const bool overlaps = GENERATE(false, true);
    std::atomic<int> calls{0};
    std::optional<weft::func_timer> t;
    t.emplace(weft::after_func(1h, [&, overlaps] {
      ++calls;
      if (overlaps) t->reset(200us);
      weft::sleep(1ms);
      t->reset(200us);
    }));
    t->reset(1ms);
    for (int i = 0; i < 20; ++i) {
      weft::sleep(4ms);
      t->stop_and_wait();
      const int then = calls;
      CHECK(then > 0);
      weft::sleep(2ms);
      CHECK(calls == then);
      t->reset(0ms);
    }
    t->stop_and_wait();
  });
}

TEST_CASE("after_func: what others set while somebody waits for the function's end stays") {
  weft::run([] {
    std::atomic<int> calls{0};
    std::atomic<bool> still_pending{false};
    weft::chan<void> go_on;
    std::optional<weft::func_timer> t;
    t.emplace(weft::after_func(0ms, [&] {
      if (++calls > 1) return;
      go_on.recv();
      still_pending = t->reset(1h);  // does nothing: somebody waits
    }));
    CHECK(eventually([&] { return calls == 1; }));
    auto waits = weft::spawn([&] { t->stop_and_wait(); });
    weft::sleep(a_while);
    CHECK(!t->reset(20ms));
    go_on.send();
    waits.join();
    CHECK(still_pending);
    CHECK(eventually([&] { return calls == 2; }));
  });
}

TEST_CASE("after_func: who waited for the function's end when its run() ended does not keep it from going on") {
  static std::optional<weft::func_timer> t;
  static std::atomic<int> calls{0};
  static std::atomic<bool> first_run{true};
  calls = 0;
  first_run = true;
  weft::run([] {
    t.emplace(weft::after_func(0ms, [] {
      ++calls;
      if (first_run) weft::sleep(1h);
      t->reset(100us);
    }));
    CHECK(eventually([] { return calls == 1; }));
    weft::go([] { t->stop_and_wait(); });
    weft::sleep(a_while);
  });
  first_run = false;
  weft::run([] {
    t->reset(0ms);
    CHECK(eventually([] { return calls >= 5; }));
    t->stop_and_wait();
  });
  t.reset();
}

TEST_CASE("after_func: stop_and_wait from the function itself does not wait for itself") {
  weft::run([] {
    chan<int> done{1};
    auto box = std::make_shared<std::optional<weft::func_timer>>();
    *box = weft::after_func(1h, [=] { done.send((*box)->stop_and_wait() ? 1 : 0); });
    (*box)->reset(1ms);
    CHECK(done.recv() == 0);
    weft::sleep(1ms);
    box->reset();
  });
}

TEST_CASE("after_func: stop_and_wait from one of two runs of the function") {
  weft::run([] {
    chan<int> done{2};
    chan<void> second_runs, go_on;
    std::optional<weft::func_timer> t;
    std::atomic<int> number{0};
    t = weft::after_func(1ms, [&, done, second_runs, go_on] {
      if (++number == 1) {
        second_runs.recv();
        t->stop_and_wait();  // does not wait: two runs that waited for each other would do so forever
        done.send(1);
      } else {
        second_runs.close();
        go_on.recv();
        done.send(2);
      }
    });
    CHECK(eventually([&] { return number == 1; }));
    t->reset(0s);
    CHECK(eventually([&] { return number == 2; }));
    weft::sleep(a_while);
    go_on.close();
    int v = 0;
    CHECK(done.recv_for(v, 1s) == recv_result::value);
    CHECK(done.recv_for(v, 1s) == recv_result::value);
    t->stop_and_wait();
  });
}

TEST_CASE("after_func: the function is destroyed after it ran, or with the stopped timer") {
  weft::run([] {
    auto a = std::make_shared<int>(1);
    weft::after_func(0s, [a] {});
    CHECK(eventually([&] { return a.use_count() == 1; }));
    {
      auto t = weft::after_func(1h, [a] {});
      CHECK(a.use_count() == 2);
      CHECK(t.stop());
      CHECK(a.use_count() == 2);  // kept, as the timer might be reset
    }
    CHECK(a.use_count() == 1);
    {
      auto t = weft::after_func(1h, [a] {});
      t.reset(never);
    }
    CHECK(a.use_count() == 1);
  });
}

TEST_CASE("after_func: what is pending when run() ends is destroyed, without handles then and else with the last") {
  auto a = std::make_shared<int>(1);
  std::optional<weft::func_timer> kept;
  weft::run([&] {
    weft::after_func(1h, [a] {});
    kept.emplace(weft::after_func(1h, [a] {}));
  });
  CHECK(a.use_count() == 2);
  kept.reset();
  CHECK(a.use_count() == 1);
}

namespace {

// Calls f once, in its destructor. f may wait.
template <class F>
class at_end {
 public:
  explicit at_end(F f) : f_(std::move(f)) {}
  at_end(at_end&& o) noexcept : f_(std::move(o.f_)), live_(std::exchange(o.live_, false)) {}
  at_end& operator=(at_end&&) = delete;
  ~at_end() {
    if (live_) f_();
  }

 private:
  F f_;
  bool live_ = true;
};

}  // namespace

TEST_CASE("after_func: the destructor of a stopped function may wait") {
  weft::run([] {
    chan<int> c;
    for (bool last_is_stopped : {true, false}) {
      weft::go([&] {
        auto t = weft::after_func(last_is_stopped ? clock::duration(1h) : clock::duration(0s), [g = at_end([c] {
                                                                                                  weft::yield();
                                                                                                  weft::sleep(1ms);
                                                                                                  c.send(7);
                                                                                                })] {});
        if (last_is_stopped) t.stop();
      });
      int v = 0;
      CHECK(c.recv_for(v, 5s) == recv_result::value);
    }
    // The M that cleans the heap up must not have to call the user's code.
    for (int i = 0; i < 1000; ++i) {
      auto t = weft::after_func(1h, [g = at_end([c] { (void)c.try_send(1); })] {});
      t.stop();
    }
    weft::sleep(1ms);
  });
}

TEST_CASE("after_func: while a function's destructor waits, its thread does other things") {
  weft::run([] {
    chan<void> go_on;
    weft::wait_group ended;
    ended.add(8);
    for (int i = 0; i < 8; ++i) {
      // Not by main: if the function has run before the handle goes, whoever drops the handle waits.
      weft::go([go_on, &ended] {
        weft::after_func(0s, [g = at_end([go_on, &ended] {
                                go_on.recv();
                                ended.done();
                              })] {});
      });
    }
    weft::sleep(5ms);  // by now they wait
    // The world stops only if no M is inside the runtime.
    std::uint32_t n = weft::procs();
    CHECK(weft::set_procs(n + 1) == n);
    CHECK(weft::set_procs(n) == n + 1);
    weft::sleep(1ms);
    go_on.close();
    ended.wait();
  });
}

// --- many, at once, under way

TEST_CASE("many: 100,000 functions after no time") {
  weft::run([] {
    const int n = under_tsan ? 2000 : 100000;
    std::atomic<int> ran{0};
    for (int i = 0; i < n; ++i) {
      weft::after_func(0s, [&] { ++ran; });
      if (i % 1024 == 0) weft::yield();
    }
    CHECK(eventually([&] { return ran == n; }, 30s));
  });
}

TEST_CASE("many: 10,000 timers at random times, a third of them stopped, a third moved") {
  weft::run([] {
    const int n = fewer(10000);
    std::mt19937 random(3);
    std::atomic<int> ran{0}, early{0};
    std::vector<weft::func_timer> timers;
    std::vector<std::atomic<std::int64_t>> due(static_cast<std::size_t>(n));
    auto base = clock::now();
    for (int i = 0; i < n; ++i) {
      auto k = static_cast<std::size_t>(i);
      auto d = std::chrono::microseconds(30000 + random() % 40000);
      due[k] = (clock::now() + d - base).count();
      timers.push_back(weft::after_func(d, [&, k, base] {
        early += clock::now() < base + clock::duration(due[k]);
        ++ran;
      }));
    }
    int stopped = 0, moved = 0;
    for (std::size_t k = 0; k < timers.size(); ++k) {
      if (k % 3 == 0) {
        stopped += timers[k].stop();
      } else if (k % 3 == 1) {
        auto d = std::chrono::microseconds(random() % 60000);
        // The timer may still fire at its first time.
        due[k] = std::min<std::int64_t>(due[k], (clock::now() + d - base).count());
        moved += timers[k].reset(d);
      }
    }
    int left = n - stopped;
    CHECK(eventually([&] { return ran >= left; }, 30s));
    weft::sleep(a_while);
    int moved_too_late = n / 3 - moved;  // these ran twice
    CHECK(ran - left <= moved_too_late + 1);
    CHECK(early == 0);
    for (auto& t : timers) t.stop_and_wait();
  });
}

TEST_CASE("many: setting and stopping leaves no pile of stopped timers") {
  weft::run([] {
    auto leaves_no_pile = [](int n, auto set_and_stop) {
      for (int i = 0; i < n; ++i) {
        set_and_stop();
        if (i % 64 == 0) weft::yield();
      }
      CHECK(eventually([] { return timers_in_heaps() < 100; }));
    };
    auto keep = weft::after_func(1h, [] {});
    leaves_no_pile(fewer(100000), [] { weft::after_func(1h, [] {}).stop(); });
    leaves_no_pile(fewer(5000), [] {
      weft::timer t{1h};
      put_into_heap(t);
      t.stop();
    });
    leaves_no_pile(fewer(5000), [] { put_into_heap(weft::timer{1h}); });
    leaves_no_pile(fewer(5000), [] { put_into_heap(weft::ticker{1h}); });
    // Timers that are stopped but kept.
    std::vector<weft::timer> timers;
    leaves_no_pile(1000, [&] {
      timers.emplace_back(1h);
      put_into_heap(timers.back());
      timers.back().stop();
    });
    std::vector<weft::func_timer> functions;
    leaves_no_pile(1000, [&] {
      functions.push_back(weft::after_func(1h, [] {}));
      functions.back().stop();
    });
    CHECK(keep.stop());
  });
}

TEST_CASE("many: a deadline that is pushed on 100,000 times is one timer") {
  weft::run([] {
    auto listener = weft::net::tcp_listener::bind("127.0.0.1:0");
    auto stream = weft::net::tcp_stream::connect(listener.local_endpoint());
    stream.set_deadline(clock::now() + 1h);
    weft::timer t{1h};
    put_into_heap(t);
    auto f = weft::after_func(1h, [] {});
    CHECK(timers_in_heaps() >= 3);
    for (int i = 0; i < fewer(100000); ++i) {
      t.reset(1h);
      f.reset(1h);
      stream.set_deadline(clock::now() + 1h);
    }
    CHECK(timers_in_heaps() < 10);
    CHECK(t.stop());
    CHECK(f.stop());
  });
}

// time's TestConcurrentTimerReset, TestConcurrentTimerResetStop
TEST_CASE("at once: stops and resets of one timer by many goroutines") {
  weft::run([] {
    weft::timer t{1h};
    std::atomic<int> ran{0};
    auto f = weft::after_func(1h, [&] { ++ran; });
    weft::wait_group w;
    for (int g = 0; g < 8; ++g) {
      w.go([&, g] {
        std::mt19937 random(static_cast<unsigned>(g));
        for (int i = 0; i < fewer(2000); ++i) {
          switch (random() % 6) {
            case 0: t.stop(); break;
            case 1: f.stop(); break;
            case 2: f.reset(std::chrono::microseconds(random() % 100)); break;
            case 3: {
              time_point v;
              (void)t.channel().recv_for(v, 20us);
              break;
            }
            default: t.reset(std::chrono::microseconds(random() % 100));
          }
          if (i % 16 == 0) weft::yield();
        }
      });
    }
    w.wait();
    t.stop();
    f.stop_and_wait();
    int before = ran;
    CHECK(silent(t.channel(), 5ms));
    CHECK(ran == before);
    t.reset(1ms);
    f.reset(1ms);
    CHECK(t.channel().recv().has_value());
    CHECK(eventually([&] { return ran == before + 1; }));
    f.stop_and_wait();
  });
}

TEST_CASE("at once: each reset of a function's timer that says it was pending took one run back") {
  weft::run([] {
    std::atomic<int> armed{0}, taken_back{0}, ran{0};
    auto f = weft::after_func(1h, [&] { ++ran; });
    ++armed;
    weft::wait_group w;
    for (int g = 0; g < 4; ++g) {
      w.go([&, g] {
        for (int i = 0; i < fewer(2000); ++i) {
          if ((i + g) % 3 == 0) {
            taken_back += f.stop();
          } else {
            ++armed;
            taken_back += f.reset(std::chrono::microseconds((i * 7 + g) % 30));
          }
          if (i % 8 == 0) weft::yield();
        }
      });
    }
    w.wait();
    CHECK(eventually([&] { return armed == taken_back + ran; }));
    f.stop_and_wait();
  });
}

TEST_CASE("timers are kept while the number of Ps changes") {
  weft::run([] {
    unsigned before = weft::procs();
    const int n = fewer(200);
    std::atomic<int> woke{0}, early{0};
    weft::wait_group w;
    std::atomic<bool> over{false};
    weft::ticker k{1ms};
    std::atomic<int> ticks{0};
    weft::go([&, c = k.channel()] {
      while (!over) {
        time_point v;
        ticks += c.recv_for(v, 1s) == recv_result::value;
      }
      over = false;
    });
    for (int i = 0; i < n; ++i) {
      w.go([&, i] {
        auto until = clock::now() + std::chrono::microseconds(200 * (i % 150));
        weft::sleep_until(until);
        early += clock::now() < until;
        ++woke;
      });
    }
    for (unsigned p : {4U, 1U, 8U, 2U, 3U, 1U, 5U}) {
      weft::set_procs(p);
      weft::sleep(3ms);
    }
    w.wait();
    CHECK(woke == n);
    CHECK(early == 0);
    int so_far = ticks;
    CHECK(eventually([&] { return ticks > so_far + 2; }));
    over = true;
    CHECK(eventually([&] { return !over; }));
    weft::set_procs(before);
  });
}

TEST_CASE("a timer fires although every P computes") {
  weft::run([] {
    std::atomic<bool> over{false};
    unsigned n = weft::procs() + 1;
    weft::wait_group w;
    for (unsigned i = 0; i < n; ++i) {
      w.go([&] {
        while (!over) {}  // never calls weft
      });
    }
    clock::duration worst{};
    for (int i = 0; i < 5; ++i) {
      auto until = clock::now() + 1ms;
      weft::sleep_until(until);
      worst = std::max(worst, clock::now() - until);
    }
    over = true;
    w.wait();
    INFO("late by " << std::chrono::duration_cast<std::chrono::microseconds>(worst).count() << " us");
    CHECK(worst < 500ms * slowdown);
  });
}

TEST_CASE("a ticker goes on beside goroutines that yield all the time") {
  weft::run([] {
    std::atomic<bool> over{false};
    weft::wait_group w;
    for (unsigned i = 0; i < weft::procs() * 2; ++i) {
      w.go([&] {
        while (!over) weft::yield();
      });
    }
    auto begin = clock::now();
    weft::ticker k{1ms};
    for (int i = 0; i < 20; ++i) k.channel().recv();
    auto took = clock::now() - begin;
    over = true;
    w.wait();
    CHECK(took >= 20ms);
    CHECK(took < 1s * slowdown);
  });
}

TEST_CASE("a sleep among goroutines that pass messages all the time ends in time") {
  weft::run([] {
    std::atomic<bool> over{false};
    weft::wait_group w;
    for (unsigned i = 0; i < weft::procs(); ++i) {
      chan<int> a;
      w.go([=, &over] {
        while (!over) a.send(1);
        a.close();
      });
      w.go([=] {
        for (int v : a) (void)v;
      });
    }
    auto begin = clock::now();
    for (int i = 0; i < 10; ++i) weft::sleep(1ms);
    auto took = clock::now() - begin;
    over = true;
    w.wait();
    CHECK(took < 1s * slowdown);
  });
}

// The kernel may end a long poll late, by a thousandth of its time.
TEST_CASE("a long sleep of an idle program is no later than a short one") {
  weft::run([] {
    constexpr auto least_of_kernel = 700us;
    constexpr auto allowed = least_of_kernel / 2 * slowdown;
    auto latest = clock::duration::max();
    for (int i = 0; i < 10 && latest > allowed; ++i) {
      auto due = clock::now() + least_of_kernel * 1000;
      weft::sleep_until(due);
      REQUIRE(clock::now() >= due);
      latest = std::min(latest, clock::now() - due);
    }
    // A virtual machine that idles may be slow to wake at all: a thread that sleeps for as long tells by how much.
    auto bare = clock::duration::zero();
    for (int i = 0; i < 3 && latest > allowed + bare; ++i) {
      auto due = clock::now() + least_of_kernel * 1000;
      weft::blocking([due] { std::this_thread::sleep_until(due); });
      bare = std::max(bare, clock::now() - due);
    }
    CHECK(latest <= allowed + bare);
  });
}
