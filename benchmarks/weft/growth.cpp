// What one operation costs among 10^3 to 10^6 goroutines or timers. All of them exist before the clock starts.
#include <weft/chan.hpp>
#include <weft/go.hpp>
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

// One operation: a goroutine gives way to the next.
void take_turns(bench::job& j, std::size_t goroutines) {
  const std::size_t each = std::max<std::size_t>(1, j.count(8'000'000) / goroutines);
  std::atomic<std::size_t> begun{0}, done{0};
  std::atomic<bool> start{false}, end{false};
  weft::chan<void> gate;  // nobody takes turns with the spawner
  weft::wait_group wg;
  for (std::size_t i = 0; i < goroutines; ++i) {
    wg.go([&] {
      gate.recv();
      begun.fetch_add(1, std::memory_order_relaxed);
      while (!start.load(std::memory_order_relaxed)) weft::yield();
      for (std::size_t k = 0; k < each; ++k) weft::yield();
      done.fetch_add(1, std::memory_order_relaxed);
      while (!end.load(std::memory_order_relaxed)) weft::yield();
    });
  }
  gate.close();
  while (begun.load() < goroutines) weft::yield();
  // Each one's turn in which it sees `start` counts, too.
  j.measure_once(goroutines * (each + 1), [&] {
    start = true;
    while (done.load() < goroutines) weft::yield();
  });
  end = true;
  wg.wait();
}

// One operation: a goroutine that waits for a question gets one, and answers. Who is asked next is random.
void ask(bench::job& j, std::size_t goroutines) {
  std::vector<weft::chan<int>> questions(goroutines);
  weft::chan<int> answers;
  std::atomic<std::size_t> begun{0};
  for (auto& q : questions) {
    weft::go([&begun, q, answers] {
      begun.fetch_add(1, std::memory_order_relaxed);
      for (int v : q) answers.send(v);
    });
  }
  while (begun.load() < goroutines) weft::yield();
  weft::yield();  // so that the last ones wait
  std::shuffle(questions.begin(), questions.end(), std::minstd_rand(1));
  j.measure(j.count(1'000'000), [&](std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      questions[i % goroutines].send(1);
      answers.recv();
    }
  });
  for (auto& q : questions) q.close();
}

// One operation: a timer that is far from due is set to another time. Which one is next is random.
void reset_timers(bench::job& j, std::size_t timers) {
  std::minstd_rand random(1);
  auto far = [&] { return 1h + random() % 1'000'000 * 1us; };
  std::vector<weft::func_timer> all;
  all.reserve(timers);
  for (std::size_t i = 0; i < timers; ++i) all.push_back(weft::after_func(far(), [] {}));
  std::shuffle(all.begin(), all.end(), random);
  j.measure(j.count(2'000'000), [&](std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) all[i % timers].reset(far());
  });
  for (auto& t : all) t.stop();
}

const bench::workloads here{
    {"yield_1k", [](bench::job& j) { take_turns(j, 1000); }},
    {"yield_10k", [](bench::job& j) { take_turns(j, 10'000); }},
    {"yield_100k", [](bench::job& j) { take_turns(j, 100'000); }},
    {"yield_1m", [](bench::job& j) { take_turns(j, 1'000'000); }},
    {"ask_1k", [](bench::job& j) { ask(j, 1000); }},
    {"ask_10k", [](bench::job& j) { ask(j, 10'000); }},
    {"ask_100k", [](bench::job& j) { ask(j, 100'000); }},
    {"ask_1m", [](bench::job& j) { ask(j, 1'000'000); }},
    {"reset_1k", [](bench::job& j) { reset_timers(j, 1000); }},
    {"reset_10k", [](bench::job& j) { reset_timers(j, 10'000); }},
    {"reset_100k", [](bench::job& j) { reset_timers(j, 100'000); }},
    {"reset_1m", [](bench::job& j) { reset_timers(j, 1'000'000); }},
};

}  // namespace
