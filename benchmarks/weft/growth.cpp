// What one operation costs among 10^3 to 10^6 goroutines (timers: timers.cpp). All of them exist before the clock
// starts.
#include <weft/chan.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/sync.hpp>

#include <algorithm>
#include <atomic>
#include <random>
#include <vector>

#include "benchmarks/support/bench.hpp"

namespace {

// One operation: a goroutine gives way to the next.
void take_turns(bench::job& j, std::size_t goroutines) {
  const std::size_t each = j.count(8'000'000, goroutines) / goroutines;
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

const bench::workloads here{
    {"yield_1k", [](bench::job& j) { take_turns(j, 1000); }},
    {"yield_10k", [](bench::job& j) { take_turns(j, 10'000); }},
    {"yield_100k", [](bench::job& j) { take_turns(j, 100'000); }},
    {"yield_1m", [](bench::job& j) { take_turns(j, 1'000'000); }},
    {"ask_1k", [](bench::job& j) { ask(j, 1000); }},
    {"ask_10k", [](bench::job& j) { ask(j, 10'000); }},
    {"ask_100k", [](bench::job& j) { ask(j, 100'000); }},
    {"ask_1m", [](bench::job& j) { ask(j, 1'000'000); }},
};

}  // namespace
