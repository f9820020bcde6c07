// The memory that a burst of goroutines with deep stacks, or of timers, has taken goes back to the system: that of
// stacks soon (half of them within a second or two), all of it at the forced tick.
//
// Kills these mutants (tests/mutants): stacks-cool-while-awake, stacks-cool-put-off.
#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

using namespace weft::test;

namespace {

constexpr std::size_t depth = 32 * 1024;
constexpr int burst = 20'000;

// Returns the value of a field, in KiB.
long field(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string word; in >> word;) {
    if (word != name) continue;
    long value = 0;
    in >> value;
    return value;
  }
  return 0;
}
long resident() { return field("/proc/self/smaps_rollup", "Rss:"); }

[[gnu::noinline]] void touch_stack() {
  char room[depth];
  std::memset(room, 1, sizeof room);
  asm volatile("" : : "r"(room) : "memory");
}

// Runs n goroutines, all at once, that go deep down their stacks and then wait; with `timers`, for a timer first.
void have(int n, bool timers) {
  weft::chan<void> gate;
  weft::wait_group all;
  std::atomic<int> there{0};
  for (int i = 0; i < n; ++i) {
    all.go([&] {
      touch_stack();
      ++there;
      if (timers) weft::sleep(1s);
      gate.recv();
    });
  }
  while (there < n) weft::sleep(1ms);
  gate.close();
  all.wait();
}

}  // namespace

TEST_CASE("after a burst of goroutines with deep stacks the memory goes back") {
  long room = field("/proc/meminfo", "MemAvailable:");
  int n = room > 3 * burst * static_cast<long>(depth / 1024) ? burst : burst / 10;
  static std::atomic<int> ticks{0};
  weft::on_forced_tick([] { ++ticks; });
  weft::run(
      [n] {
        auto tick = [] {
          int from = ticks;
          while (ticks < from + 2) weft::sleep(5ms);
        };
        have(100, true);
        tick();
        const long before = resident();
        const long kept = before / 10 + 32 * static_cast<long>(weft::procs());  // for each P and its thread's malloc
        for (bool timers : {false, true, false}) {
          have(n, timers);
          tick();
          CHECK(eventually([&] { return resident() <= before + kept; }));
          UNSCOPED_INFO("before " << before << " KiB, now " << resident());
        }
      },
      {.force_tick_period = 20ms});
}

TEST_CASE("after a burst of goroutines with deep stacks most of the memory goes back within seconds") {
  constexpr int n = burst / 4;
  weft::run([] {
    have(100, false);
    const long before = resident();
    for (bool busy : {false, true}) {
      CAPTURE(busy);
      std::atomic<bool> stop{false};
      weft::wait_group runs;
      for (unsigned i = 0; busy && i < weft::procs(); ++i) {
        runs.go([&] {
          while (!stop) weft::yield();
        });
      }
      have(n, false);
      const long burst_took = resident() - before;
      CHECK(burst_took > n * static_cast<long>(depth / 1024) * 8 / 10);
      weft::sleep(5s);  // nothing runs meanwhile, or something on each P
      const long left = resident() - before;
      CHECK(left < burst_took / 4);
      stop = true;
      runs.wait();
    }
  });
}

TEST_CASE("after a burst of timers the memory goes back, of those with small closures and with large ones") {
  weft::run(
      [] {
        // Made only once: malloc keeps what a vector gives back.
        std::vector<weft::func_timer> timers;
        timers.reserve(200'000);
        std::size_t a = 1, b = 2, c = 3, d = 4;
        auto small = [&a] { ++a; };
        auto large = [=] { static_cast<void>(a + b + c + d); };
        weft::sleep(200ms);  // what other tests left behind goes at the tick
        long before = resident();
        for (int round = 0; round < 3; ++round) {
          for (int i = 0; i < 200'000; ++i) {
            timers.push_back(i % 2 == 0 ? weft::after_func(1h, small) : weft::after_func(1h, large));
          }
          CHECK(resident() >= before + 200'000 * 128 / 1024);
          for (auto& t : timers) t.stop();
          timers.clear();
          CHECK(eventually([&] { return resident() <= before + 200'000 * 128 / 1024 / 6; }));
          UNSCOPED_INFO("before " << before << " KiB, now " << resident());
        }
      },
      {.force_tick_period = 20ms});
}
