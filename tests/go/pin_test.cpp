// weft::pin: a goroutine stays on its thread, which others use while it waits. weft::no_preemption: nobody takes its P.

#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>
#include <weft/weft.hpp>

using namespace weft::test;
using weft::chan;

namespace {

// Suspends the goroutine, in one of several ways.
void wander(int i) {
  switch (i % 5) {
    case 0: weft::yield(); break;
    case 1: weft::sleep(20us); break;
    case 2: weft::blocking([] { ::usleep(20); }); break;
    case 3: weft::sleep(0ns); break;
    default: weft::spawn([] { weft::yield(); }).join();
  }
}

// Suspends the goroutine n times, in all ways. Returns how often it continued on another thread than its first one.
int times_moved(int n) {
  pid_t mine = ::gettid();
  int moved = 0;
  for (int i = 0; i < n; ++i) {
    wander(i);
    moved += ::gettid() != mine;
  }
  return moved;
}

}  // namespace

TEST_CASE("pin: the thread stays the same across suspensions, whatever others do") {
  std::atomic<int> moved{0};
  weft::run([&] {
    weft::wait_group w;
    for (int g = 0; g < 12; ++g) {
      w.go([&, g] {
        for (int round = 0; round < fewer(10); ++round) {
          if (g % 3 == 2) {
            for (int i = 0; i < 20; ++i) wander(g + i);
            compute_for(100us);
          } else {
            weft::pin here;
            moved += times_moved(20);
          }
        }
      });
    }
    w.wait();
  });
  CHECK(moved == 0);
}

TEST_CASE("pin: others run on the thread while the goroutine waits") {
  weft::run(
      [] {
        weft::pin here;
        pid_t mine = ::gettid();
        std::atomic<int> on_it{0};
        weft::wait_group w;
        for (int i = 0; i < 10; ++i) w.go([&] { on_it += ::gettid() == mine; });
        w.wait();
        CHECK(on_it == 10);  // there is only one P, and no reason to pass it on
        CHECK(::gettid() == mine);
      },
      {.procs = 1});
}

TEST_CASE("pin: they nest, and end with the block, also by an exception") {
  weft::run([] {
    for (int i = 0; i < 20; ++i) {
      try {
        weft::pin outer;
        pid_t mine = ::gettid();
        {
          weft::pin inner;
          wander(i);
        }
        wander(i + 1);
        CHECK(::gettid() == mine);
        throw std::runtime_error("out of it");
      } catch (const std::runtime_error&) {
        wander(i);
      }
    }
    weft::spawn([] {
      weft::pin here;
      wander(1);
      weft::exit_goroutine();
    }).wait();
  });
}

TEST_CASE("pin: with lock_os_thread, in any order") {
  weft::run([] {
    weft::wait_group w;
    std::atomic<int> wrong{0};
    for (int g = 0; g < 6; ++g) {
      w.go([g, &wrong] {
        for (int i = 0; i < fewer(10); ++i) {
          auto before = std::make_unique<weft::pin>();
          pid_t mine = ::gettid();
          wander(g + i);
          bool locks = g % 2 == 0;
          if (locks) weft::lock_os_thread();
          wander(g + i + 1);
          if (i % 2) before.reset();
          if (locks || before) wrong += times_moved(3);
          if (locks && !before) wrong += ::gettid() != mine;
          if (locks) weft::unlock_os_thread();
          if (before) wrong += ::gettid() != mine;
        }
      });
    }
    w.wait();
    CHECK(wrong == 0);
  });
}

TEST_CASE("pin: one that locks the thread where another is pinned leaves it to that one") {
  weft::run(
      [] {
        chan<void> go_on;
        auto pinned = weft::spawn([&] {
          weft::pin here;
          pid_t mine = ::gettid();
          go_on.recv();
          return ::gettid() == mine;
        });
        weft::yield();
        auto locker = weft::spawn([&] {
          weft::lock_os_thread();
          go_on.close();
          pinned.wait();
          weft::unlock_os_thread();
        });
        locker.join();
        CHECK(pinned.join());
      },
      {.procs = 1});
}

TEST_CASE("pin: one that announces that it blocks does not hold up those pinned to its thread") {
  weft::run([] {
    for (int round = 0; round < 10; ++round) {
      int fds[2];
      REQUIRE(::pipe(fds) == 0);
      std::optional<weft::task<void>> blocked;
      auto pinned = weft::spawn([&] {
        weft::pin here;
        blocked = weft::spawn([&] {
          weft::blocking([&] {
            char c;
            (void)!::read(fds[0], &c, 1);
          });
        });
        int moved = times_moved(10);
        (void)!::write(fds[1], "", 1);  // otherwise the other goroutine would never come back
        return moved;
      });
      CHECK(pinned.join() == 0);
      blocked->join();
      ::close(fds[0]);
      ::close(fds[1]);
    }
  });
}

TEST_CASE("pin: one that computes holds up those pinned to its thread until it calls weft, and no longer") {
  weft::run(
      [] {
        std::atomic<bool> computing{false}, calls{false};
        auto pinned = weft::spawn([&] {
          weft::pin here;
          pid_t mine = ::gettid();
          weft::go([&] {
            computing = true;
            compute_for(40ms);  // the P is taken meanwhile
            calls = true;
          });
          weft::sleep(1ms);
          CHECK(computing);
          CHECK(calls);
          return ::gettid() == mine;
        });
        CHECK(pinned.join());
      },
      {.procs = 1});
}

TEST_CASE("pin: one whose thread sleeps in the poller is woken there") {
  weft::run(
      [] {
        chan<int> c;
        std::atomic<bool> ran{false};
        auto pinned = weft::spawn([&] {
          weft::pin here;
          c.recv();
          ran = true;
        });
        // no_preemption keeps the P of this goroutine. So it is the other M, to which `pinned` is pinned, that sleeps
        // in the poller once there is something to sleep for. When `pinned` is ready, yet another M has to come for it,
        // and must pass it on to its own M.
        weft::no_preemption alone;
        std::this_thread::sleep_for(2ms);
        auto something = weft::after_func(1h, [] {});
        std::this_thread::sleep_for(2ms);
        auto give_up = clock::now() + late;
        bool woken = false;
        while (!(woken = c.try_send(1)) && clock::now() < give_up) std::this_thread::sleep_for(50us);
        while (woken && !ran && clock::now() < give_up) std::this_thread::sleep_for(50us);
        CHECK(woken);
        CHECK(ran);
        something.stop();
        c.close();
      },
      {.procs = 2});
}

TEST_CASE("pin: those that others make ready again and again leave turns to the rest of their thread") {
  weft::run(
      [] {
        constexpr int n = 32;
        std::vector<chan<int>> words(n);
        std::atomic<bool> stop{false};
        std::atomic<int> ticks{0}, ran{0};
        weft::task_group all;
        auto compute = [](clock::duration d) {
          for (auto end = clock::now() + d; clock::now() < end;) {}
        };
        for (auto& c : words) {
          all.go([&, c] {
            weft::pin here;
            while (c.recv()) {
              compute(1us);
              if (ran.fetch_add(1) % 1000 == 0) weft::go([&ticks] { ++ticks; });
            }
          });
        }
        all.go([&] {
          weft::pin here;
          for (; !stop; ++ticks) weft::sleep(1ms);
        });
        weft::sleep(a_while);
        weft::set_procs(2);
        all.go([&] {
          weft::blocking([] { ::usleep(2000); });  // comes back on the other thread
          weft::pin here;
          while (!stop) {
            for (auto& c : words) (void)c.try_send(1);
            compute(20us);
            weft::yield();
          }
          for (auto& c : words) c.close();
        });
        weft::blocking([] { ::usleep(500'000); });
        CHECK(ticks > 50);
        stop = true;
        all.wait();
      },
      {.procs = 1});
}

TEST_CASE("pin: the number of Ps changes meanwhile") {
  weft::run([] {
    std::atomic<bool> over{false};
    std::atomic<int> moved{0};
    unsigned before = weft::procs();
    weft::wait_group w;
    for (int g = 0; g < 6; ++g) {
      w.go([&, g] {
        while (!over) {
          if (g < 3) {
            weft::pin here;
            moved += times_moved(10);
          } else {
            wander(g);
          }
        }
      });
    }
    for (unsigned i = 0; i < 30u; ++i) {
      weft::set_procs(1 + i % 4);
      weft::sleep(300us);
    }
    over = true;
    w.wait();
    weft::set_procs(before);
    CHECK(moved == 0);
  });
}

TEST_CASE("pin: run() ends while pinned goroutines wait") {
  chan<void> never;
  weft::run([&] {
    for (int i = 0; i < 10; ++i) {
      weft::go([&] {
        auto here = std::make_unique<weft::pin>();
        if (never.recv()) here.reset();
      });
      weft::go([&] {
        weft::pin here;
        for (;;) weft::yield();
      });
    }
    weft::sleep(2ms);
  });
}

TEST_CASE("pin, no_preemption: goroutines only") {
  CHECK_THROWS_AS(weft::pin(), std::logic_error);
  CHECK_THROWS_AS(weft::no_preemption(), std::logic_error);
}

// --- no_preemption

TEST_CASE("no_preemption: alone on the only P, nobody else runs") {
  weft::run(
      [] {
        std::atomic<int> turns{0};
        std::atomic<bool> over{false};
        chan<int> c{1};
        auto other = weft::spawn([&] {
          while (!over) {
            ++turns;
            weft::yield();
          }
        });
        while (turns == 0) weft::yield();
        // If the thread of `other` had lost the processor, the P may have been taken from it. `other` counts once more
        // then, before it waits.
        auto wait_until_it_waits = [] {
          while (weft::runtime_stats().detached != 0) compute_for(1ms);
        };
        {
          weft::no_preemption outer;
          wait_until_it_waits();
          int before = turns;
          compute_for(30ms);
          {
            weft::no_preemption inner;
            c.send(1);  // there is room
          }
          compute_for(30ms);
          c.recv();
          CHECK(turns == before);

          // A wait lets others run. After it, nobody else runs again.
          weft::sleep(1ms);
          CHECK(turns > before);
          wait_until_it_waits();
          before = turns;
          compute_for(30ms);
          CHECK(turns == before);
        }
        int before = turns;
        compute_for(200ms);  // the P may be taken again
        over = true;
        CHECK(turns > before);
        other.join();
      },
      {.procs = 1});
}

TEST_CASE("no_preemption: one that ends inside the runtime puts giving way off until that is left") {
  struct slow {
    slow() = default;
    slow(slow&&) noexcept {
      weft::no_preemption alone;
      compute_for(25ms);
    }
  };
  weft::run(
      [] {
        std::atomic<bool> over{false};
        auto other = weft::spawn([&] {
          while (!over) weft::yield();
        });
        chan<slow> c{1};
        for (int i = 0; i < 3; ++i) {
          c.send(slow());  // moved in and out under the channel's lock
          CHECK(c.recv().has_value());
        }
        over = true;
        other.join();
      },
      {.procs = 1});
}

TEST_CASE("no_preemption: an exception ends it") {
  weft::run(
      [] {
        std::atomic<int> turns{0};
        std::atomic<bool> over{false};
        auto other = weft::spawn([&] {
          while (!over) {
            ++turns;
            weft::yield();
          }
        });
        try {
          weft::no_preemption alone;
          compute_for(12ms);
          throw 1;
        } catch (int) {}
        int before = turns;
        CHECK(eventually([&] {
          compute_for(20ms);
          return turns > before;
        }));
        over = true;
        other.join();
        // It does not outlast its goroutine either, even if it is never destroyed.
        weft::spawn([] {
          weft::no_preemption alone;
          weft::exit_goroutine();
        }).wait();
        alignas(weft::no_preemption) std::byte room[sizeof(weft::no_preemption)];
        weft::spawn([&] { (void)new (room) weft::no_preemption; }).join();
        std::atomic<bool> stop{false};
        auto hog = weft::spawn([&] {
          while (!stop) {}
        });
        weft::sleep(1ms);  // the hog's P is taken, although its G may be that of the goroutine above
        stop = true;
        hog.join();
      },
      {.procs = 1});
}

TEST_CASE("no_preemption: set_procs waits for its end, and works inside") {
  weft::run([] {
    unsigned before = weft::procs();
    std::atomic<bool> over{false}, done{false};
    std::thread changes;
    {
      weft::no_preemption alone;
      changes = std::thread([&] {
        weft::set_procs(3);
        done = true;
        CHECK(over);
      });
      compute_for(20ms);
      CHECK(!done);
      over = true;
    }
    weft::blocking([&] { changes.join(); });
    CHECK(weft::procs() == 3);
    {
      weft::no_preemption alone;
      weft::set_procs(2);
      weft::set_procs(before);
    }
    CHECK(weft::procs() == before);
  });
}
