// What the runtime does from time to time: the forced tick, ending idle threads, following the number of processors.

#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>
#include <weft/weft.hpp>

using namespace weft::test;

TEST_CASE("the forced tick keeps its period, also a short one, whether anything runs or not") {
  static std::atomic<int> calls{0};
  weft::on_forced_tick([] { ++calls; });
  CHECK_THROWS_AS(weft::on_forced_tick({}), std::invalid_argument);
  for (bool busy : {false, true}) {
    weft::run(
        [busy] {
          if (busy) {
            weft::go([] {
              for (;;) weft::yield();
            });
          }
          calls = 0;
          weft::sleep(300ms);
          CHECK(calls >= 40 / slowdown);  // of 100
        },
        {.force_tick_period = 3ms});
  }
}

TEST_CASE("the forced tick calls what was registered") {
  static std::atomic<int> calls{0};
  weft::on_forced_tick([] { ++calls; });
  weft::run([] { CHECK(eventually([] { return calls >= 2; })); }, {.force_tick_period = 5ms});
}

TEST_CASE("the forced tick copies no function, and calls what one registers at the next tick") {
  static std::atomic<int> calls{0}, copies{0}, later{0};
  struct counted {
    counted() = default;
    counted(const counted&) { ++copies; }
    void operator()() const {
      if (++calls == 1) weft::on_forced_tick([] { ++later; });
    }
  };
  weft::on_forced_tick(counted());
  copies = 0;
  weft::run([] { CHECK(eventually([] { return calls >= 3 && later >= 1; })); }, {.force_tick_period = 5ms});
  CHECK(copies == 0);
  CHECK(later < calls);
}

TEST_CASE("those that block in calls that nobody announced hold up the others for less than a time slice") {
  auto took = [] {
    const auto begin = clock::now();
    weft::run(
        [] {
          weft::wait_group w;
          for (int i = 0; i < 40; ++i) {
            w.go([] {
              for (int k = 0; k < 10; ++k) {
                ::usleep(5000);
                weft::yield();
              }
            });
          }
          w.wait();
        },
        {.procs = 2});
    return clock::now() - begin;
  };
  auto least = took();
  for (int attempt = 0; attempt < 3 && least >= 600ms; ++attempt) least = std::min(least, took());
  CHECK(least < 600ms);  // if they blocked each P one after the other: 1 s
}

namespace {

// Returns how often sysmon went to sleep.
long pauses_of_sysmon() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    if (!(std::ifstream(task.path() / "comm") >> name) || name != "weft-sysmon") continue;
    std::ifstream status(task.path() / "status");
    for (std::string key; status >> key;) {
      long n;
      if (key == "voluntary_ctxt_switches:" && status >> n) return n;
    }
  }
  return -1;
}

}  // namespace

TEST_CASE("beside goroutines that use up one time slice after the other, sysmon looks a few times in each") {
  std::uint64_t slices = 0, looks = 0;
  auto run_for_400ms = [&] {
    const long pauses = pauses_of_sysmon();
    REQUIRE(pauses >= 0);
    const std::uint64_t before = weft::runtime_stats().retakes;
    weft::mutex m;
    weft::wait_group w;
    const auto end = clock::now() + 400ms;
    for (int i = 0; i < 4; ++i) {
      w.go([&] {
        while (clock::now() < end) {
          const std::lock_guard hold(m);
          compute_for(10us);
        }
      });
    }
    w.wait();
    looks = static_cast<std::uint64_t>(pauses_of_sysmon() - pauses);
    slices = weft::runtime_stats().retakes - before;
  };
  for (int attempt = 0; attempt < 4 && slices < 26; ++attempt) weft::run(run_for_400ms, {.procs = 1});
  CAPTURE(slices, looks);
  CHECK(slices >= 26);  // of 10 ms each, where the machine does nothing else; without a look soon 20
  CHECK(looks < 1500);  // without a rest 2000 to 3000
}

TEST_CASE("threads that nobody needs any more end") {
  weft::run(
      [] {
        constexpr int n = 30;
        weft::wait_group w;
        for (int i = 0; i < n; ++i) w.go([] { weft::blocking([] { ::usleep(50000); }); });
        w.wait();
        CHECK(weft::runtime_stats().threads > 6);
        CHECK(eventually([] { return weft::runtime_stats().threads <= 6; }, 20s));
        // New threads come when they are needed.
        for (int i = 0; i < n; ++i) w.go([] { weft::blocking([] { ::usleep(10000); }); });
        w.wait();
      },
      {.procs = 2});
}

TEST_CASE("the number of Ps follows the processors until somebody sets it") {
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  if (CPU_COUNT(&before) < 2 || std::getenv("WEFT_PROCS")) return;
  auto on_all_threads = [](const cpu_set_t& cpus) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      (void)::sched_setaffinity(std::stoi(task.path().filename()), sizeof cpus, &cpus);
    }
  };
  weft::run([&] {
    if (weft::procs() < 2) return;  // a quota allows only one
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; ++i) {
      if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
    }
    on_all_threads(one);
    CHECK(eventually([] { return weft::procs() == 1; }, 20s));
    on_all_threads(before);
    CHECK(eventually([] { return weft::procs() > 1; }, 20s));
    CHECK(weft::set_procs(3) > 1);
    weft::sleep(2500ms);
    CHECK(weft::procs() == 3);
  });
  on_all_threads(before);
}

TEST_CASE("beside more goroutines that compute without end than may have threads, what has begun goes on") {
  constexpr int n = 80;
  std::atomic<bool> stop{false};
  std::atomic<int> begun{0}, ended{0};
  weft::run(
      [&] {
        weft::ticker tick(5ms);
        for (int i = 0; i < n; ++i) {
          weft::go([&] {
            ++begun;
            while (!stop.load(std::memory_order_relaxed)) {}
            ++ended;
          });
        }
        for (int i = 0; i < 40; ++i) CHECK(tick.channel().recv().has_value());
        CHECK(begun < n);  // the others wait, so that there are not more and more threads
        stop = true;
        CHECK(eventually([&] { return ended == n; }, 30s));
        CHECK(weft::spawn([] { return 7; }).join() == 7);
      },
      {.procs = 1});
  CHECK(begun == n);
}

TEST_CASE("beside many that compute, few more begin if each is started next, and then waited for") {
  constexpr int n = 60, before = 14;
  std::atomic<bool> stop{false};
  std::atomic<int> begun{0};
  weft::run(
      [&] {
        weft::ticker tick(2ms);  // sysmon takes Ps for its overdue ticks
        auto hog = [&] {
          ++begun;
          while (!stop.load(std::memory_order_relaxed)) {}
        };
        for (int i = 0; i < before; ++i) weft::go(hog);
        CHECK(eventually([&] { return begun >= before - 2; }, 30s));
        const int begun_before = begun;
        for (int i = 0; i < n; ++i) {
          weft::go([hog] { hog(); });
          (void)tick.channel().recv();
        }
        CHECK(begun - begun_before < n / 2);
        stop = true;
        CHECK(eventually([&] { return begun == n + before; }, 30s));
      },
      {.procs = 1});
}

TEST_CASE("whom a timer wakes runs before those that wait also when the program has just begun") {
  constexpr int n = 6;
  std::atomic<int> begun{0};
  weft::run(
      [&] {
        weft::wait_group w;
        for (int i = 0; i < n; ++i) {
          w.go([&] {
            ++begun;
            compute_for(50ms);
          });
        }
        weft::sleep(1ms);
        CHECK(begun <= n / 2);
        w.wait();
      },
      {.procs = 1});
}

TEST_CASE("goroutines of a kind of which one computed do not wait like it once another one does not") {
  constexpr int n = 40;
  std::atomic<bool> stop{false};
  std::atomic<int> done{0}, left{n};
  auto hog = [&] {
    while (!stop.load(std::memory_order_relaxed)) {}
    --left;
  };
  weft::run(
      [&] {
        weft::ticker tick(5ms);  // sysmon takes Ps for its overdue ticks
        for (int i = 0; i < n; ++i) {
          weft::go(hog);
          weft::go([&, i] {
            if (i == 8) compute_for(500ms);  // at a time when there are too many hogs already
            ++done;
          });
        }
        // Fails if each of these goroutines runs between two hogs, each of which delays the next goroutine by up to a
        // second.
        CHECK(eventually([&] { return done == n; }, 10s));
        CHECK(left == n);
        stop = true;
        CHECK(eventually([&] { return left == 0; }, 30s));
      },
      {.procs = 1});
}

namespace {

// Runs ten thousand goroutines that compute, ten thousand that block in an unannounced read, and a ticker that began
// before them, until more than `enough` reads have begun and 250 ticks have come.
struct beside_many {
  std::vector<clock::duration> late;  // sorted
  int reads_begun = 0;                // by the end of the measurement
};
beside_many many_hogs(unsigned procs, unsigned max_threads, int enough) {
  const int each = under_tsan ? 500 : 10000;  // TSan counts goroutines as threads
  int fd[2];
  REQUIRE(::pipe(fd) == 0);
  std::atomic<bool> stop{false};
  std::atomic<int> reads_begun{0}, hogs_ended{0}, reads_ended{0};
  beside_many r;
  std::uint64_t most_threads = 0;
  weft::run(
      [&] {
        weft::ticker tick(10ms);
        for (int i = 0; i < each; ++i) {
          weft::go([&] {
            while (!stop.load(std::memory_order_relaxed)) {}
            ++hogs_ended;
          });
          weft::go([&] {
            ++reads_begun;
            char c;
            if (::read(fd[0], &c, 1) == 0) ++reads_ended;
          });
        }
        // Counts ticks rather than time: the whole process may stand still for part of the time.
        for (auto give_up = clock::now() + 60s; clock::now() < give_up;) {
          if (r.late.size() >= 250 && reads_begun > enough) break;
          r.late.push_back(clock::now() - *tick.channel().recv());
          most_threads = std::max(most_threads, weft::runtime_stats().threads);
        }
        CHECK(hogs_ended + reads_ended == 0);
        r.reads_begun = reads_begun;
        stop = true;
        ::close(fd[1]);
        CHECK(eventually([&] { return hogs_ended == each && reads_ended == each; }, 60s));
      },
      {.procs = procs, .max_threads = max_threads});
  ::close(fd[0]);
  CHECK(most_threads <= max_threads);
  std::sort(r.late.begin(), r.late.end());
  return r;
}

}  // namespace

TEST_CASE("10,000 goroutines that compute and 10,000 that block: a ticker is on time, and in the end all are done") {
  for (unsigned procs : {1u, 2u}) {
    CAPTURE(procs);
    beside_many r = many_hogs(procs, 1000, 20);
    CHECK(r.late.size() > 20);
    CHECK(r.late[r.late.size() / 2] < 20ms * slowdown);  // what is later than the median is mostly the machine's
    CHECK(r.reads_begun > 20);                           // goroutines that compute do not hold up the reads
  }
}

TEST_CASE("10,000 goroutines that block hold nearly all threads that may be, and no more; a ticker goes on") {
  beside_many r = many_hogs(2, 40, 5);
  CHECK(r.late.size() > 20);
  CHECK(r.late[r.late.size() / 2] < 20ms * slowdown);
  CHECK(r.reads_begun > 5);
  CHECK(r.reads_begun < 40);
}

namespace {

// Runs a ticker of 1 ms, and a goroutine that holds the only P for a second without announcing it. True: the ticker
// missed nothing except in the first 12 ms.
bool ticker_beside(const std::function<void()>& hold_p) {
  std::atomic<int> state{0};
  clock::duration first{}, longest_gap{};
  bool in_time = false;
  weft::run(
      [&] {
        weft::ticker tick(1ms);
        clock::time_point start;
        weft::go([&] {
          start = clock::now();
          state = 1;
          hold_p();
          state = 2;
        });
        while (state == 0) (void)tick.channel().recv();
        first = clock::now() - start;
        for (auto last = clock::now(); state == 1 && last < start + 900ms;) {
          (void)tick.channel().recv();
          auto now = clock::now();
          longest_gap = std::max(longest_gap, now - last);
          last = now;
        }
        in_time = state == 1;
        CHECK(eventually([&] { return state == 2; }, 60s));
      },
      {.procs = 1});
  auto ms = [](clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  UNSCOPED_INFO("the first tick after " << ms(first) << " ms, then at most " << ms(longest_gap) << " ms between two");
  return in_time && first < 12ms * slowdown && longest_gap < 12ms * slowdown;  // three ticks of most kernels
}

// True if f succeeds at least once in ten times: sometimes the machine has no processor to spare.
bool at_best(const std::function<bool()>& f) {
  for (int i = 0; i < 10; ++i) {
    if (f()) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("at one P, a ticker of 1 ms misses nothing beyond the first 12 ms of an unannounced nanosleep of 1 s") {
  auto sleep = [] {
    timespec t{1, 0};
    ::nanosleep(&t, nullptr);
  };
  CHECK(at_best([&] { return ticker_beside(sleep); }));
}

TEST_CASE("at one P, a ticker of 1 ms misses nothing beyond the first 12 ms of a loop that never ends") {
  CHECK(at_best([] { return ticker_beside([] { compute_for(1s); }); }));
}
