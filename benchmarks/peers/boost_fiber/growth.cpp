#include <boost/fiber/operations.hpp>
#include <boost/fiber/unbuffered_channel.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>

#include "benchmarks/peers/boost_fiber/fibers.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

void take_turns(bench::job& j, std::size_t fibers) {
  const std::size_t each = j.count(8'000'000, fibers) / fibers;
  std::atomic<std::size_t> begun{0}, done{0};
  std::atomic<bool> start{false}, end{false};
  std::vector<boost::fibers::fiber> all;
  for (std::size_t i = 0; i < fibers; ++i) {
    all.push_back(bench::start_small([&] {
      begun.fetch_add(1, std::memory_order_relaxed);
      while (!start.load(std::memory_order_relaxed)) boost::this_fiber::yield();
      for (std::size_t k = 0; k < each; ++k) boost::this_fiber::yield();
      done.fetch_add(1, std::memory_order_relaxed);
      while (!end.load(std::memory_order_relaxed)) boost::this_fiber::yield();
    }));
  }
  while (begun.load() < fibers) boost::this_fiber::yield();
  j.measure_once(fibers * (each + 1), [&] {
    start = true;
    while (done.load() < fibers) boost::this_fiber::yield();
  });
  end = true;
  for (auto& f : all) f.join();
}

void ask(bench::job& j, std::size_t fibers) {
  using channel = boost::fibers::unbuffered_channel<int>;
  std::vector<std::unique_ptr<channel>> questions(fibers);
  channel answers;
  std::atomic<std::size_t> begun{0};
  std::vector<boost::fibers::fiber> all;
  for (auto& q : questions) {
    q = std::make_unique<channel>();
    all.push_back(bench::start_small([&begun, &answers, &asked = *q] {
      begun.fetch_add(1, std::memory_order_relaxed);
      for (int v : asked) answers.push(v);
    }));
  }
  while (begun.load() < fibers) boost::this_fiber::yield();
  boost::this_fiber::yield();  // so that the last ones wait
  std::shuffle(questions.begin(), questions.end(), std::minstd_rand(1));
  j.measure(j.count(1'000'000), [&](std::size_t n) {
    int v = 0;
    for (std::size_t i = 0; i < n; ++i) {
      questions[i % fibers]->push(1);
      answers.pop(v);
    }
  });
  for (auto& q : questions) q->close();
  for (auto& f : all) f.join();
}

// Among a tenth of what the other peers have at most, as in wake_all.cpp.
const bench::workloads here{
    {"yield_1k", [](bench::job& j) { take_turns(j, 1000); }},
    {"yield_10k", [](bench::job& j) { take_turns(j, 10'000); }},
    {"yield_100k", [](bench::job& j) { take_turns(j, 100'000); }},
    {"ask_1k", [](bench::job& j) { ask(j, 1000); }},
    {"ask_10k", [](bench::job& j) { ask(j, 10'000); }},
    {"ask_100k", [](bench::job& j) { ask(j, 100'000); }},
};

}  // namespace
