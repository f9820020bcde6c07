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
