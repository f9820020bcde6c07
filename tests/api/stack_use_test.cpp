// stack_high_water(): how much of their stacks goroutines used, by where they were started.
#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

using namespace weft::test;

namespace {

[[gnu::noinline]] void use(std::size_t bytes) {
  volatile char room[1024];
  std::memset(const_cast<char*>(room), 1, sizeof room);
  if (bytes > sizeof room) use(bytes - sizeof room);
  room[0] = room[1];
}

// Each test uses a stack size of its own, which tells its goroutines from all others.
weft::stack_use of_size(std::size_t bytes) {
  std::vector<weft::stack_use> all = weft::stack_high_water();
  auto found = std::find_if(all.begin(), all.end(), [&](const auto& u) { return u.stack_size == bytes; });
  return found != all.end() ? *found : weft::stack_use{};
}

[[gnu::noinline]] void start(int n, std::size_t size, std::size_t depth) {
  weft::wait_group all;
  for (int i = 0; i < n; ++i) all.go({.stack_size = size}, [depth] { use(depth); });
  all.wait();
}

}  // namespace

TEST_CASE("nothing is measured unless it is asked for") {
  weft::run([] { start(3, 80 * 1024, 4096); });
  CHECK(of_size(80 * 1024).goroutines == 0);
}

TEST_CASE("the deepest of those that ended, and how many") {
  weft::run(
      [] {
        start(3, 96 * 1024, 40 * 1024);
        CHECK(eventually([] { return of_size(96 * 1024).goroutines == 3; }));
      },
      {.measure_stacks = true});
  weft::stack_use u = of_size(96 * 1024);
  CHECK(u.started_at != nullptr);
  CHECK(u.goroutines == 3);
  CHECK(u.deepest > 40 * 1024);
  CHECK(u.deepest < 60 * 1024);
}

namespace {
[[gnu::noinline]] void schedule(std::atomic<int>* ran) {
  weft::after_func(0s, [ran] { ++*ran; });
}
[[gnu::noinline]] void schedule_elsewhere(std::atomic<int>* ran) {
  weft::after_func(0s, [ran] { ++*ran; });
}
}  // namespace

// Each of these functions has a goroutine that counts as started where after_func was called.
TEST_CASE("functions of after_func, by where they were scheduled") {
  constexpr std::size_t size = 144 * 1024;
  weft::run(
      [] {
        std::atomic<int> ran{0};
        for (int i = 0; i < 3; ++i) schedule(&ran);
        schedule_elsewhere(&ran);
        CHECK(eventually([&] { return ran == 4; }));
        CHECK(eventually([] { return weft::num_goroutines() == 1; }));
      },
      {.stack_size = size, .measure_stacks = true});
  std::vector<std::uint64_t> of_schedule;
  for (const weft::stack_use& u : weft::stack_high_water()) {
    const auto* at = static_cast<const std::byte*>(u.started_at);
    auto within = [at](void (*f)(std::atomic<int>*)) {
      const auto* begin = reinterpret_cast<const std::byte*>(f);
      return at > begin && at < begin + 1024;
    };
    if (u.stack_size == size && (within(schedule) || within(schedule_elsewhere))) of_schedule.push_back(u.goroutines);
  }
  std::sort(of_schedule.begin(), of_schedule.end());
  CHECK(of_schedule == std::vector<std::uint64_t>{1, 3});
}

TEST_CASE("a stack that was used before counts for nobody else") {
  constexpr std::size_t size = 112 * 1024;
  weft::run([] { start(1, size, 64 * 1024); });  // not measured
  weft::run(
      [] {
        start(20, size, 1024);
        CHECK(eventually([] { return of_size(size).goroutines == 20; }));
      },
      {.measure_stacks = true});
  weft::stack_use u = of_size(size);
  CHECK(u.deepest < 24 * 1024);
}

TEST_CASE("living goroutines are counted, parked and running") {
  constexpr std::size_t size = 128 * 1024;
  weft::run(
      [] {
        weft::chan<void> gate;
        weft::wait_group all;
        std::atomic<bool> runs{false}, stop{false};
        all.go({.stack_size = size}, [&] {
          use(30 * 1024);
          gate.recv();
        });
        all.go({.stack_size = size}, [&] {
          runs = true;
          while (!stop) {}
        });
        CHECK(eventually([&] { return runs.load(); }));
        std::uint64_t living = 0;
        std::size_t deepest = 0;
        for (const weft::stack_use& u : weft::stack_high_water()) {
          if (u.stack_size != size) continue;
          living += u.goroutines;
          deepest = std::max(deepest, u.deepest);
        }
        CHECK(living == 2);
        CHECK(deepest > 30 * 1024);
        stop = true;
        gate.close();
        all.wait();
      },
      {.procs = 2, .measure_stacks = true});
}
