#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/mutex.hpp>

#include <mutex>

#include "benchmarks/peers/boost_fiber/fibers.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

void mutex_64(bench::job& j) {
  j.measure(j.count(2'000'000, 64), [](std::size_t n) {
    boost::fibers::mutex m;
    std::size_t counter = 0;
    bench::in_fibers(64, [&] {
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
    boost::fibers::mutex m;
    bench::in_fibers(8, [&] {
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

void condition(bench::job& j) {
  j.measure(j.count(200'000), [](std::size_t n) {
    boost::fibers::mutex m;
    boost::fibers::condition_variable changed;
    int turn = 0;
    auto take_turns = [&](int me) {
      std::unique_lock lock(m);
      for (std::size_t i = 0; i < n; ++i) {
        changed.wait(lock, [&] { return turn == me; });
        turn = 1 - me;
        changed.notify_one();
      }
    };
    auto other = bench::start([&] { take_turns(0); });
    take_turns(1);
    other.join();
  });
}

const bench::workloads here{
    {"condition", condition},
    {"mutex_64", mutex_64},
    {"mutex_work", mutex_work},
};

}  // namespace
