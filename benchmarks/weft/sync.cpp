// 64 goroutines that all want the same mutex, or to read and write under the same shared_mutex; two goroutines that
// take turns with a condition variable.
#include <weft/sync.hpp>

#include <mutex>
#include <shared_mutex>

#include "benchmarks/support/bench.hpp"

namespace {

void mutex_64(bench::job& j) {
  j.measure(j.count(10'000'000, 64), [](std::size_t n) {
    weft::mutex m;
    weft::wait_group wg;
    std::size_t counter = 0;
    for (int g = 0; g < 64; ++g) {
      wg.go([&] {
        for (std::size_t i = 0; i < n / 64; ++i) {
          std::lock_guard lock(m);
          ++counter;
        }
      });
    }
    wg.wait();
    bench::keep(counter);
  });
}

void mutex_work(bench::job& j) {
  j.measure(j.count(100'000, 8), [](std::size_t n) {
    weft::mutex m;
    weft::wait_group wg;
    for (int g = 0; g < 8; ++g) {
      wg.go([&] {
        for (std::size_t i = 0; i < n / 8; ++i) {
          {
            std::lock_guard lock(m);
            bench::work();
          }
          bench::work();
        }
      });
    }
    wg.wait();
  });
}

// One operation in 16 writes, the others read.
void rwmutex_64(bench::job& j) {
  j.measure(j.count(5'000'000, 64), [](std::size_t n) {
    weft::shared_mutex m;
    weft::wait_group wg;
    std::size_t counter = 0;
    for (int g = 0; g < 64; ++g) {
      wg.go([&] {
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
    }
    wg.wait();
  });
}

// One operation: a turn of each goroutine.
void condition(bench::job& j) {
  j.measure(j.count(500'000), [](std::size_t n) {
    weft::mutex m;
    weft::condition_variable changed;
    int turn = 0;
    weft::wait_group wg;
    for (int me = 0; me < 2; ++me) {
      wg.go([&, me] {
        std::unique_lock lock(m);
        for (std::size_t i = 0; i < n; ++i) {
          changed.wait(lock, [&] { return turn == me; });
          turn = 1 - me;
          changed.notify_one();
        }
      });
    }
    wg.wait();
  });
}

const bench::workloads here{
    {"condition", condition},
    {"mutex_64", mutex_64},
    {"mutex_work", mutex_work},
    {"rwmutex_64", rwmutex_64},
};

}  // namespace
