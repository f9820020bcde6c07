// Timers: starting and stopping them, alone and among 10^6 others, many that fire at once, and how late sleepers wake.
#include <weft/runtime.hpp>
#include <weft/sync.hpp>
#include <weft/time.hpp>

#include <algorithm>
#include <atomic>
#include <random>
#include <vector>

#include "benchmarks/support/bench.hpp"

namespace {

using namespace std::chrono_literals;

// Runs f(n / procs) in one goroutine for each P, and waits for them.
template <class F>
void on_each_proc(unsigned procs, std::size_t n, F f) {
  weft::wait_group wg;
  for (unsigned p = 0; p < procs; ++p) wg.go([=] { f(n / procs); });
  wg.wait();
}

void create_stop(bench::job& j) {
  j.measure(j.count(2'000'000, j.procs()), [&](std::size_t n) {
    on_each_proc(j.procs(), n, [](std::size_t k) {
      for (std::size_t i = 0; i < k; ++i) weft::timer(1h).stop();
    });
  });
}

void reset(bench::job& j) {
  j.measure(j.count(5'000'000, j.procs()), [&](std::size_t n) {
    on_each_proc(j.procs(), n, [](std::size_t k) {
      weft::timer t(1h);
      for (std::size_t i = 0; i < k; ++i) t.reset(1h);
    });
  });
}

void after_func_stop(bench::job& j) {
  j.measure(j.count(2'000'000, j.procs()), [&](std::size_t n) {
    on_each_proc(j.procs(), n, [](std::size_t k) {
      for (std::size_t i = 0; i < k; ++i) weft::after_func(1h, [] {}).stop();
    });
  });
}

void after_func_reset(bench::job& j) {
  j.measure(j.count(5'000'000, j.procs()), [&](std::size_t n) {
    on_each_proc(j.procs(), n, [](std::size_t k) {
      auto t = weft::after_func(1h, [] {});
      for (std::size_t i = 0; i < k; ++i) t.reset(1h);
    });
  });
}

std::chrono::microseconds far(std::minstd_rand& random) { return 1h + random() % 1'000'000 * 1us; }

std::vector<weft::func_timer> far_timers(std::size_t n) {
  std::minstd_rand random(1);
  std::vector<weft::func_timer> timers;
  timers.reserve(n);
  for (std::size_t i = 0; i < n; ++i) timers.push_back(weft::after_func(far(random), [] {}));
  return timers;
}

// Uses func_timers, since a timer with a channel need not be in the heap while nobody waits for it.
void add_1m(bench::job& j) {
  auto others = far_timers(j.count(1'000'000));
  std::size_t n = j.count(1'000'000);
  std::vector<weft::func_timer> added;
  j.measure_once(n, [&] { added = far_timers(n); });
}

void stop_1m(bench::job& j) {
  std::size_t n = j.count(1'000'000);
  auto timers = far_timers(n);
  std::shuffle(timers.begin(), timers.end(), std::minstd_rand(2));
  j.measure_once(n, [&] {
    for (auto& t : timers) t.stop();
  });
}

// One operation: one of many timers is set to another time, which is far off, too. Which one is next is random.
void reset_among(bench::job& j, std::size_t n) {
  auto timers = far_timers(n);
  std::minstd_rand random(2);
  std::shuffle(timers.begin(), timers.end(), random);
  j.measure(j.count(2'000'000), [&](std::size_t ops) {
    for (std::size_t i = 0; i < ops; ++i) timers[i % n].reset(far(random));
  });
  for (auto& t : timers) t.stop();
}

// One operation: a function, from its after_func() until it has run. All are due within 1 ms.
void after_func_1m(bench::job& j) {
  std::size_t n = j.count_in_memory(1'000'000, 12 * 1024);
  j.measure_once(n, [&] {
    weft::wait_group wg;
    wg.add(static_cast<std::ptrdiff_t>(n));
    std::minstd_rand random(3);
    for (std::size_t i = 0; i < n; ++i) weft::after_func(random() % 1'000'000 * 1ns, [&] { wg.done(); });
    wg.wait();
  });
}

// One operation: a goroutine that is started, sleeps 100 ms and ends.
void sleep_1m(bench::job& j) {
  std::size_t n = j.count_in_memory(1'000'000, 12 * 1024);
  j.measure_once(n, [&] {
    weft::wait_group wg;
    for (std::size_t i = 0; i < n; ++i) wg.go([] { weft::sleep(100ms); });
    wg.wait();
  });
}

// The CPU time for each wake-up of a process in which 10,000 goroutines sleep 1 s over and over. The wake-ups are
// spread over the second.
void sleepers(bench::job& j) {
  constexpr std::size_t n = 10'000;
  const auto seconds = static_cast<std::size_t>(std::max(2.0, 4 * j.scale()));
  std::atomic<bool> stop{false};
  weft::wait_group wg;
  for (std::size_t i = 0; i < n; ++i) {
    wg.go([&, i] {
      weft::sleep(i * 100us);
      while (!stop.load(std::memory_order_relaxed)) weft::sleep(1s);
    });
  }
  weft::sleep(1500ms);
  j.measure_once(n * seconds, [&] { weft::sleep(std::chrono::seconds(seconds)); });
  stop = true;
  wg.wait();
}

// 1000 goroutines that sleep for 5 to 12 ms over and over: the CPU time for each sleep, and how late one goroutine in
// ten wakes.
void sleepers_short(bench::job& j) {
  constexpr std::size_t n = 1000;
  std::vector<bench::samples> late(n);
  std::atomic<std::size_t> sleeps{0};
  std::atomic<bool> stop{false};
  weft::wait_group wg;
  for (std::size_t i = 0; i < n; ++i) {
    wg.go([&, i, d = std::chrono::nanoseconds(5ms + i * 7us)] {
      while (!stop.load(std::memory_order_relaxed)) {
        std::int64_t due = bench::now_ns() + d.count();
        weft::sleep(d);
        sleeps.fetch_add(1, std::memory_order_relaxed);
        if (i % 10 == 0) late[i].add(bench::now_ns() - due);
      }
    });
  }
  weft::sleep(200ms);
  j.start();
  std::size_t before = sleeps;
  weft::sleep(j.period());
  j.stop(sleeps - before);
  stop = true;
  wg.wait();
  bench::samples all;
  for (auto& s : late) all.add(s);
  j.percentiles(all);
}

void lateness(bench::job& j, std::chrono::nanoseconds d) {
  bench::samples late;
  j.start();
  for (auto end = bench::clock::now() + j.period(); bench::clock::now() < end;) {
    std::int64_t due = bench::now_ns() + d.count();
    weft::sleep(d);
    late.add(bench::now_ns() - due);
  }
  j.stop(late.size());
  j.report(late);
}

const bench::workloads here{
    {"late_50us", [](bench::job& j) { lateness(j, 50us); }},
    {"late_200us", [](bench::job& j) { lateness(j, 200us); }},
    {"late_1ms", [](bench::job& j) { lateness(j, 1ms); }},
    {"late_5ms", [](bench::job& j) { lateness(j, 5ms); }},
    {"reset_1k", [](bench::job& j) { reset_among(j, 1000); }},
    {"reset_10k", [](bench::job& j) { reset_among(j, 10'000); }},
    {"reset_100k", [](bench::job& j) { reset_among(j, 100'000); }},
    {"reset_1m", [](bench::job& j) { reset_among(j, 1'000'000); }},
    {"timer_create_stop", create_stop},
    {"timer_reset", reset},
    {"after_func_stop", after_func_stop},
    {"after_func_reset", after_func_reset},
    {"timer_add_1m", add_1m},
    {"timer_stop_1m", stop_1m},
    {"after_func_1m", after_func_1m},
    {"sleep_1m", sleep_1m},
    {"sleepers", sleepers},
    {"sleepers_short", sleepers_short},
};

}  // namespace
