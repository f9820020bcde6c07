#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#include "benchmarks/peers/std_thread/threads.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

void mutex_64(bench::job& j) {
  j.measure(j.count(4'000'000, 64), [](std::size_t n) {
    std::mutex m;
    std::size_t counter = 0;
    bench::in_threads(64, [&] {
      for (std::size_t i = 0; i < n / 64; ++i) {
        std::lock_guard lock(m);
        ++counter;
      }
    });
    bench::keep(counter);
  });
}

void mutex_work(bench::job& j) {
  j.measure(j.count(100'000, 8), [](std::size_t n) {
    std::mutex m;
    bench::in_threads(8, [&] {
      for (std::size_t i = 0; i < n / 8; ++i) {
        {
          std::lock_guard lock(m);
          bench::work();
        }
        bench::work();
      }
    });
  });
}

void rwmutex_64(bench::job& j) {
  j.measure(j.count(1'000'000, 64), [](std::size_t n) {
    std::shared_mutex m;
    std::size_t counter = 0;
    bench::in_threads(64, [&] {
      for (std::size_t i = 0; i < n / 64; ++i) {
        if (i % 16 == 0) {
          std::lock_guard lock(m);
          ++counter;
        } else {
          std::shared_lock lock(m);
          bench::keep(counter);
        }
      }
    });
  });
}

void condition(bench::job& j) {
  j.measure(j.count(50'000), [](std::size_t n) {
    std::mutex m;
    std::condition_variable changed;
    int turn = 0;
    auto take_turns = [&](int me) {
      std::unique_lock lock(m);
      for (std::size_t i = 0; i < n; ++i) {
        changed.wait(lock, [&] { return turn == me; });
        turn = 1 - me;
        changed.notify_one();
      }
    };
    std::thread other(take_turns, 0);
    take_turns(1);
    other.join();
  });
}

const bench::workloads here{
    {"condition", condition},
    {"mutex_64", mutex_64},
    {"mutex_work", mutex_work},
    {"rwmutex_64", rwmutex_64},
};

}  // namespace
