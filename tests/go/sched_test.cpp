// What Go's scheduler promises (runtime/proc_test.go), and what weft's run(), tasks and goroutines promise, one test
// case each. What C++ adds is in exception_test.cpp: exceptions, errno, goroutine-local variables.

#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/slice.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <sched.h>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <vector>
#include <weft/weft.hpp>

using namespace weft::test;
using weft::chan;
using weft::recv_result;

// --- yield

TEST_CASE("yield: everything runnable gets its turn before the caller goes on") {
  weft::run(
      [] {
        for (int n : {1, 5, 100, 600}) {  // 600: more than the ring of a P
          std::atomic<int> ran{0};
          for (int i = 0; i < n; ++i) weft::go([&] { ++ran; });
          weft::yield();
          // Under a sanitizer, beginning takes so long that a goroutine may lose its P over it, and end a little later.
          if (slowdown > 1) (void)eventually([&] { return ran == n; });
          CHECK(ran == n);
        }
      },
      {.procs = 1});
}

namespace {

// Starts n goroutines that compute for `each`, and yields. Returns how many have begun when the yield returns; n if one
// of them has lost its P, as that may have happened before it was counted.
int ran_before_yield_is_over(int n, std::chrono::microseconds each) {
  const std::uint64_t lost = weft::runtime_stats().detachments;
  std::atomic<int> ran{0};
  weft::wait_group all;
  for (int i = 0; i < n; ++i) {
    all.go([&ran, each] {
      ++ran;
      for (const auto end = clock::now() + each; clock::now() < end;) {}
    });
  }
  weft::yield();
  const int so_many = weft::runtime_stats().detachments == lost ? ran.load() : n;
  all.wait();
  return so_many;
}

}  // namespace

// The ring of a P overflows into the global queue, from where goroutines come back in batches. The global queue has its
// turn once in 61 time slices, so the first loop has more rounds than that. It also has a turn whenever it had none for
// 10 ms, so the goroutines of the second loop compute for longer than that.
TEST_CASE("yield: so it is where the queue of the P overflows") {
  weft::run(
      [] {
        for (int n : {256, 257, 270, 300, 340, 520}) {
          for (int i = 0; i < 70; ++i) CHECK(ran_before_yield_is_over(n, 0us) == n);
        }
        for (int n = 256; n < 320; n += 8) CHECK(ran_before_yield_is_over(n, 300us) == n);
      },
      {.procs = 1});
}

TEST_CASE("yield: goroutines that yield take turns") {
  weft::run(
      [] {
        std::vector<int> order;
        weft::wait_group w;
        for (int g = 0; g < 3; ++g) {
          w.go([&, g] {
            for (int i = 0; i < 4; ++i) {
              order.push_back(g);
              weft::yield();
            }
          });
        }
        w.wait();
        REQUIRE(order.size() == 12);
        for (std::size_t round = 0; round < 4; ++round) {
          std::set<int> in_this(order.begin() + static_cast<long>(round) * 3,
                                order.begin() + static_cast<long>(round) * 3 + 3);
          CHECK(in_this.size() == 3);
        }
      },
      {.procs = 1});
}

// 700: more than the ring of a P, so that most of them come and go by the global queue.
TEST_CASE("yield: goroutines that yield take turns where the queue of the P overflows") {
  weft::run(
      [] {
        constexpr std::size_t n = 700;
        constexpr int rounds = 20;
        std::vector<std::size_t> order;
        weft::wait_group w;
        for (std::size_t g = 0; g < n; ++g) {
          w.go([&, g] {
            for (int i = 0; i < rounds; ++i) {
              order.push_back(g);
              weft::yield();
            }
          });
        }
        w.wait();
        REQUIRE(order.size() == rounds * n);
        // Those that begin late, or have waited in the global queue for 10 ms, change places once, in few rounds.
        int complete = 0;
        for (std::size_t round = 0; round < rounds; ++round) {
          auto begin = order.begin() + static_cast<long>(round * n);
          if (std::set<std::size_t>(begin, begin + static_cast<long>(n)).size() == n) ++complete;
        }
        CHECK(complete >= rounds / 2);
      },
      {.procs = 1});
}

// runtime's TestYieldProgress, TestYieldLockedProgress
TEST_CASE("yield: a loop of yields lets a message through") {
  for (bool locked : {false, true}) {
    weft::run([locked] {
      chan<bool> c{1};
      chan<int> done;
      weft::go([=] {
        if (locked) weft::lock_os_thread();
        bool v;
        while (c.try_recv(v) == recv_result::empty) weft::yield();
        if (locked) weft::unlock_os_thread();
        done.send(1);
      });
      weft::sleep(1ms);
      c.send(true);
      CHECK(done.recv() == 1);
    });
  }
}

TEST_CASE("yield: a loop of yields takes what waits behind a goroutine that computes") {
  weft::run(
      [] {
        constexpr int rounds = 20;
        int late_rounds = 0;
        for (int i = 0; i < rounds; ++i) {
          std::atomic<bool> yields{false}, waits{false}, begun{false};
          clock::duration took{};
          auto loop = weft::spawn([&] {
            yields = true;
            while (!waits) {}
            const auto before = clock::now();
            while (!begun) weft::yield();
            took = clock::now() - before;
          });
          while (!yields) {}  // it runs on the other P
          auto one = weft::spawn([&] { begun = true; });
          waits = true;
          for (const auto end = clock::now() + 30ms; !begun && clock::now() < end;) {}
          loop.join();
          one.join();
          late_rounds += took > 4ms;
        }
        CHECK(late_rounds <= rounds / 2);  // without that, nearly all of them: until the time slice is over
      },
      {.procs = 2});
}

TEST_CASE("yield: alone it returns at once, and a foreign thread may call it") {
  weft::run([] {
    for (int i = 0; i < 10000; ++i) weft::yield();
    std::thread t([] { weft::yield(); });
    weft::blocking([&] { t.join(); });
  });
  weft::yield();
}

// runtime's TestGoroutineParallelism: goroutines on several Ps wait for each other without calling the scheduler.
TEST_CASE("as many goroutines run at once as there are Ps") {
  weft::run([] {
    constexpr unsigned n = 3;
    weft::set_procs(n);
    for (int round = 0; round < 5; ++round) {
      std::atomic<unsigned> turn{0};
      weft::wait_group w;
      for (unsigned g = 0; g < n; ++g) {
        w.go([&, g] {
          for (unsigned i = 0; i < 5; ++i) {
            while (turn.load() != i * n + g) {}
            turn.fetch_add(1);
          }
        });
      }
      w.wait();
      CHECK(turn == 5 * n);
    }
  });
}

// runtime's TestPreemption: a goroutine that only looks at a variable does not keep the others from changing it.
TEST_CASE("goroutines that spin until another one acts do not hang, at one P") {
  weft::run(
      [] {
        std::atomic<int> x{0};
        weft::wait_group w;
        for (int i = 0; i < 2; ++i) {
          w.go([&, i] {
            for (int k = 0; k < 3; ++k) {
              while (x % 2 != i) {}
              ++x;
            }
          });
        }
        w.wait();
        CHECK(x == 6);
      },
      {.procs = 1});
}

namespace {

// The calling thread, and those that it starts, run on one processor meanwhile.
class on_one_processor {
 public:
  on_one_processor() {
    REQUIRE(::sched_getaffinity(0, sizeof before_, &before_) == 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
      if (CPU_ISSET(i, &before_)) CPU_SET(i, &one);
    }
    REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  }
  ~on_one_processor() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

}  // namespace

// Two that wait for each other by yields, each on a P of its own, where the threads of the Ps share a processor.
TEST_CASE("yield: gives way to a thread that waits for the processor") {
  on_one_processor here;
  constexpr int values = 200'000;
  int received = 0;
  weft::run(
      [&] {
        weft::chan<int> c(128);
        const auto end = clock::now() + late;
        auto sender = weft::spawn([&] {
          for (int i = 0; i < values && clock::now() < end;) {
            if (c.try_send(i)) {
              ++i;
            } else {
              weft::yield();
            }
          }
        });
        for (int v; received < values && clock::now() < end;) {
          if (c.try_recv(v) == recv_result::value) {
            ++received;
          } else {
            weft::yield();
          }
        }
      },
      {.procs = 2});
  CHECK(received == values);
}

TEST_CASE("yield: gives way to a thread of the program, and to a call, that wait for the processor") {
  on_one_processor here;
  weft::run(
      [] {
        constexpr int turns = 200;
        std::atomic<int> turn{0};
        auto the_other = [&] {
          for (int i = 0; i < turns; ++i) {
            while (turn != 1) ::sched_yield();
            turn = 0;
          }
        };
        auto yields = [&] {
          long n = 0;
          for (int i = 0; i < turns; ++i) {
            for (turn = 1; turn != 0; ++n) weft::yield();
          }
          return n;
        };
        // While a thread has the processor for its time slice, a goroutine yields some 100,000 times.
        std::thread thread(the_other);
        CHECK(yields() < turns * 5000);
        thread.join();
        auto caller = weft::spawn([&] { weft::blocking(the_other); });
        CHECK(yields() < turns * 5000);
        caller.join();
      },
      {.procs = 1});
}

// --- fairness

// runtime's TestPingPongHog: two goroutines that talk to each other do not starve others, although each puts the other
// into runnext.
TEST_CASE("a pair that plays ping-pong does not starve the others") {
  weft::run(
      [] {
        std::atomic<bool> over{false};
        std::atomic<long> others{0};
        chan<int> ping, pong;
        weft::wait_group w;
        w.go([=] {
          for (int v : ping) pong.send(v);
          pong.close();
        });
        w.go([=, &over] {
          while (!over) {
            ping.send(1);
            pong.recv();
          }
          ping.close();
        });
        for (int i = 0; i < 3; ++i) {
          w.go([&] {
            while (!over) {
              ++others;
              weft::yield();
            }
          });
        }
        // From outside of the pair: the sleeps of this call have to end, too.
        CHECK(eventually([&] { return others > 500; }));
        over = true;
        w.wait();
      },
      {.procs = 1});
}

TEST_CASE("a pair that plays ping-pong does not starve one that was started before") {
  weft::run(
      [] {
        std::atomic<bool> ran{false};
        long rounds = 0;
        chan<int> ping, pong;
        weft::go([&] { ran = true; });
        weft::go([=] {
          for (int v : ping) pong.send(v);
        });
        auto begin = clock::now();
        while (!ran && clock::now() - begin < late) {
          ping.send(1);
          pong.recv();
          ++rounds;
        }
        ping.close();
        CHECK(ran);
      },
      {.procs = 1});
}

// The prime sieve: a goroutine that passes a value on runs again only after the goroutine that received it. A value
// that is made before it is wanted is work in vain for all the channels that it passes. `receive` is how the goroutines
// of the chain do it; `pause` is called once, when there are 50 of them. Returns how many values were made until the
// 600th prime, 4409, was known.
template <class Receive, class Pause>
int made_by_sieve(Receive receive, Pause pause) {
  int made = 0, last = 0, made_then = 0;
  weft::run(
      [&] {
        weft::chan<int> c;
        weft::go([&made, c] {
          for (int i = 2;; ++i, ++made) c.send(i);
        });
        for (int primes = 0; primes < 600; ++primes) {
          if (primes == 50) pause();
          last = *c.recv();
          weft::chan<int> next;
          weft::go([c, next, prime = last, receive] {
            for (;;) {
              if (int v = receive(c); v % prime != 0) next.send(v);
            }
          });
          c = next;
        }
        made_then = made;
      },
      {.procs = 1});
  CHECK(last == 4409);
  return made_then;
}

constexpr auto by_recv = [](const weft::chan<int>& c) { return *c.recv(); };
constexpr auto by_select = [](const weft::chan<int>& c) {
  static const weft::chan<int> silent = weft::nil;
  int value = 0;
  weft::select(weft::on_recv(c, [&](std::optional<int> v) { value = *v; }),
               weft::on_recv(silent, [](std::optional<int>) {}));
  return value;
};

TEST_CASE("a chain of goroutines does not work ahead of its end") {
  // 4407, and those that are made early because a time slice of 10 ms is over.
  CHECK(made_by_sieve(by_recv, [] {}) < 4407 + 500 * slowdown);
}

TEST_CASE("a chain of goroutines that has worked ahead stops doing so") {
  auto until_all_wait = [] {
    for (int i = 0; i < 3000; ++i) weft::yield();
  };
  CHECK(made_by_sieve(by_recv, until_all_wait) < 4407 + 500 * slowdown);
  CHECK(made_by_sieve(by_select, until_all_wait) < 4407 + 500 * slowdown);
}

// Each timer's function makes the timer due again at once, and what a timer makes ready runs next.
TEST_CASE("timers that are due again when they have run do not starve the others") {
  weft::run(
      [] {
        constexpr std::size_t several = 30;
        constexpr long turns = 20;
        std::atomic<bool> over{false};
        std::atomic<long> runs{0};
        std::vector<weft::func_timer> timers;
        for (std::size_t i = 0; i < several; ++i) {
          timers.push_back(weft::after_func(1h, [&, i] {
            ++runs;
            compute_for(100us);
            if (!over) timers[i].reset(0s);
          }));
        }
        for (auto& t : timers) t.reset(0s);
        for (long i = 0; i < turns && runs < 10'000; ++i) weft::yield();
        long until_then = runs;
        over = true;
        for (auto& t : timers) t.stop_and_wait();
        CHECK(until_then < turns * 2 * static_cast<long>(several));
      },
      {.procs = 1});
}

// runtime's TestSchedLocalQueueStarve / the global queue: the goroutines in it get their turn beside local work.
TEST_CASE("goroutines in the global queue are not starved by local ones") {
  weft::run([] {
    std::atomic<bool> over{false};
    std::atomic<int> from_outside{0};
    weft::wait_group w;
    for (int i = 0; i < 2; ++i) {
      w.go([&] {
        chan<int> a, b;
        weft::go([=] {
          for (int v : a) b.send(v);
          b.close();
        });
        while (!over) {
          a.send(1);
          b.recv();
        }
        a.close();
      });
    }
    // A thread has no P: what it starts goes to the global queue.
    std::thread t([&] {
      for (int i = 0; i < 50; ++i) weft::go([&] { ++from_outside; });
    });
    CHECK(eventually([&] { return from_outside == 50; }));
    over = true;
    w.wait();
    weft::blocking([&] { t.join(); });
  });
}

namespace {

// The most rounds that the pair plays, and the longest time that passes, until all others have run.
struct beside_pair {
  long rounds = 0;
  clock::duration time{0};
};

// Two goroutines play ping-pong, and do `work` for each message. Beside them, 300 goroutines are woken, `times` times.
// A ring does not hold that many, so some of them are in the global queue. A ticker ends time slices now and then, so
// that no goroutine is asked to yield.
beside_pair wake_many_beside_a_pair(int times, auto work) {
  beside_pair most;
  weft::run(
      [&] {
        std::atomic<bool> over{false};
        std::atomic<long> rounds{0};
        chan<int> ping, pong;
        weft::wait_group w;
        w.go([&] {
          while (ping.recv()) {
            work();
            pong.send(1);
          }
        });
        w.go([&] {
          for (; !over; ++rounds) {
            ping.send(1);
            work();
            pong.recv();
          }
          ping.close();
        });
        w.go([&] {
          weft::ticker t(1ms);
          while (!over) t.channel().recv();
        });
        for (int i = 0; i < times; ++i) {
          const long before = rounds;
          const auto start = clock::now();
          chan<void> gate;
          weft::wait_group many;
          for (int k = 0; k < 300; ++k) many.go([=] { gate.recv(); });
          gate.close();
          many.wait();
          most.rounds = std::max(most.rounds, rounds - before);
          most.time = std::max(most.time, clock::now() - start);
          weft::sleep(1ms);
        }
        over = true;
        w.wait();
      },
      {.procs = 1});
  return most;
}

}  // namespace

TEST_CASE("a pair that plays ping-pong does not starve those in the global queue") {
  CHECK(wake_many_beside_a_pair(fewer(200), [] {}).rounds < 500'000);
}

// With this work, a time slice has hardly as many messages as it takes to end the pair's turn.
TEST_CASE("a pair that does something between its messages does not starve those in the global queue") {
  CHECK(wake_many_beside_a_pair(5, [] { compute_for(2us); }).time < 1s);
}

// The ticker begins a new time slice before any goroutine is asked to yield, and the global queue has its turn only
// once in so many slices.
TEST_CASE("a pair that does much between its messages does not starve those in the global queue") {
  CHECK(wake_many_beside_a_pair(20, [] { compute_for(100us); }).time < 500ms * slowdown);
}

// runtime's TestSchedLocalQueueEmpty: a goroutine that was made ready is found, if need be by another P.
TEST_CASE("a goroutine that was made ready is found while its maker goes on computing") {
  weft::run([] {
    unsigned before = weft::set_procs(2);
    for (int i = 0; i < 20; ++i) {
      std::atomic<bool> ran{false};
      weft::go([&] { ran = true; });
      auto begin = clock::now();
      while (!ran && clock::now() - begin < late) {}
      CHECK(ran);
      weft::yield();
    }
    weft::set_procs(before);
  });
}

TEST_CASE("a goroutine that computes without calling weft holds up the others for no more than tens of ms") {
  weft::run(
      [] {
        clock::duration worst{};
        for (int i = 0; i < 3; ++i) {
          std::atomic<bool> over{false};
          auto hog = weft::spawn([&] {
            while (!over) {}
          });
          weft::yield();  // lets the hog begin
          auto begin = clock::now();
          chan<int> c;
          weft::go([=] { c.send(1); });
          c.recv();
          worst = std::max(worst, clock::now() - begin);
          over = true;
        }
        INFO(std::chrono::duration_cast<std::chrono::microseconds>(worst).count() << " us");
        CHECK(worst < 500ms * slowdown);
      },
      {.procs = 1});
}

TEST_CASE("a blocking call that nobody announced holds up the others for no more than tens of ms") {
  weft::run([] {
    std::atomic<int> blocked{0};
    weft::wait_group w;
    for (unsigned i = 0; i < weft::procs() + 1; ++i) {
      w.go([&] {
        ++blocked;
        ::usleep(300000);
      });
    }
    auto begin = clock::now();
    CHECK(eventually([&] { return blocked == static_cast<int>(weft::procs()) + 1; }));
    auto took = clock::now() - begin;
    INFO(std::chrono::duration_cast<std::chrono::microseconds>(took).count() << " us");
    CHECK(took < 200ms * slowdown);
    w.wait();
  });
}

// If each dispatch takes long, a turn for sleepers once in eight dispatches is not often enough.
TEST_CASE("sleepers run soon after they wake beside goroutines that compute and yield") {
  weft::run(
      [] {
        std::atomic<bool> over{false};
        weft::wait_group w;
        for (int i = 0; i < 16; ++i) {
          w.go([&] {
            while (!over) {
              compute_for(1ms);
              weft::yield();
            }
          });
        }
        int late_ones = 0;
        for (int i = 0; i < 20; ++i) {
          const auto due = clock::now() + 5ms;
          weft::sleep(5ms);
          late_ones += clock::now() - due > 8ms;
        }
        over = true;
        w.wait();
        CHECK(late_ones <= 5);
      },
      {.procs = 1});
}

// --- blocking()

TEST_CASE("blocking: a goroutine whose calls last long hands its P off at once") {
  weft::run(
      [] {
        weft::chan<int> c(1);
        auto other = weft::spawn([&] {
          while (c.recv()) {}
        });
        auto calls = [&](int n) {
          const auto before = weft::runtime_stats().retakes;
          for (int i = 0; i < n; ++i) {
            c.send(i);  // the other goroutine wants the P
            weft::blocking([] { ::usleep(300); });
          }
          return weft::runtime_stats().retakes - before;
        };
        calls(20);
        CHECK(calls(50) >= 45);

        // Where long ones and short ones alternate, none of the short ones loses the P.
        std::uint64_t short_ones = 0;
        for (int i = 0; i < 150; ++i) {
          calls(1);
          c.send(i);
          const auto before = weft::runtime_stats().retakes;
          weft::blocking([] { return ::getppid(); });
          short_ones += weft::runtime_stats().retakes - before;
        }
        CHECK(short_ones <= 10);
        c.close();
        other.join();
      },
      {.procs = 1});
}

TEST_CASE("blocking: others run meanwhile, at one P") {
  weft::run(
      [] {
        int fds[2];
        REQUIRE(::pipe(fds) == 0);
        chan<char> got;
        weft::go([=] {
          char c = 0;
          weft::blocking([&] { return ::read(fds[0], &c, 1); });
          got.send(c);
        });
        weft::yield();
        int n = 0;
        for (int i = 0; i < 100; ++i) {
          weft::spawn([&] { ++n; }).join();
        }
        CHECK(n == 100);
        REQUIRE(::write(fds[1], "x", 1) == 1);
        CHECK(got.recv() == 'x');
        ::close(fds[0]);
        ::close(fds[1]);
      },
      {.procs = 1});
}

// After a while in which nothing has happened, sysmon looks only every 10 ms.
TEST_CASE("blocking: who waits for the only P has it soon") {
  weft::run(
      [] {
        auto soonest = clock::duration::max();
        for (int i = 0; i < 20 && soonest > 3ms; ++i) {
          compute_for(30ms);
          clock::time_point began;
          auto other = weft::spawn([&] { began = clock::now(); });
          auto called = clock::now();
          weft::blocking([] { std::this_thread::sleep_for(40ms); });
          other.join();
          soonest = std::min(soonest, began - called);
        }
        CHECK(soonest <= 3ms);
      },
      {.procs = 1});
}

// While all Ps idle, sysmon may be in a pause of 10 ms, which the call has to end.
TEST_CASE("blocking: timers, descriptors and what threads make ready do not wait for the only P") {
  weft::run(
      [] {
        int fds[2];
        REQUIRE(::pipe(fds) == 0);
        chan<int> c;
        weft::semaphore permits(0);
        const auto wait = GENERATE(0, 1, 2, 3, 4);  // what is waited for, see below
        auto soonest = clock::duration::max();
        for (int i = 0; i < 20 && soonest > 2ms * slowdown; ++i) {
          std::atomic<clock::rep> due{0};
          std::thread thread;
          weft::sleep(3ms);
          auto call = weft::spawn([&] { weft::blocking([&] { ::usleep(40'000); }); });
          const auto begin = clock::now();
          if (wait == 0) {
            due = (begin + 1ms).time_since_epoch().count();
            weft::sleep(1ms);
          } else {
            thread = std::thread([&] {
              std::this_thread::sleep_for(1ms);
              due = clock::now().time_since_epoch().count();
              if (wait == 1) {
                [[maybe_unused]] ssize_t n = ::write(fds[1], "x", 1);
              } else if (wait == 2) {
                c.send(1);
              } else if (wait == 3) {
                weft::go([=] { c.send(1); });
              } else {
                permits.release(2);
              }
            });
            if (wait == 1) {
              char byte;
              weft::io::wait_readable(fds[0]);
              CHECK(::read(fds[0], &byte, 1) == 1);
            } else if (wait < 4) {
              c.recv();
            } else {
              auto other = weft::spawn([&] { permits.acquire(); });
              permits.acquire();
              other.join();
            }
          }
          soonest = std::min(soonest, clock::now().time_since_epoch() - clock::duration(due.load()));
          call.join();
          if (thread.joinable()) thread.join();
        }
        INFO("what waited: " << wait);
        CHECK(soonest <= 2ms * slowdown);
        ::close(fds[0]);
        ::close(fds[1]);
      },
      {.procs = 1});
}

TEST_CASE("blocking: a ticker ticks beside one short call after the other") {
  weft::run(
      [] {
        int most = 0;
        for (int i = 0; i < 5 && most < fewer(70); ++i) {
          std::atomic<bool> over{false};
          auto calls = weft::spawn([&] {
            while (!over) weft::blocking([] { ::usleep(1000); });
          });
          int ticks = 0;
          weft::ticker t(1ms);
          for (auto end = clock::now() + 100ms; clock::now() < end; ++ticks) t.channel().recv();
          over = true;
          calls.join();
          most = std::max(most, ticks);
        }
        CHECK(most >= fewer(70));
      },
      {.procs = 1});
}

TEST_CASE("blocking: a call that begins while sysmon rests from the last one is looked at afterwards") {
  weft::run(
      [] {
        auto soonest = clock::duration::max();
        for (int i = 0; i < 10 && soonest > 4ms * slowdown; ++i) {
          std::atomic<bool> over{false};
          auto sleeper = weft::spawn([&] {
            auto longest = clock::duration::zero();
            while (!over) {
              const auto begin = clock::now();
              weft::sleep(100us);
              longest = std::max(longest, clock::now() - begin);
            }
            return longest;
          });
          weft::sleep(20ms);
          weft::blocking([] {});
          weft::sleep(400us);
          weft::blocking([] { ::usleep(20'000); });
          over = true;
          soonest = std::min(soonest, sleeper.join());
        }
        CHECK(soonest <= 4ms * slowdown);
      },
      {.procs = 1});
}

TEST_CASE("blocking: returns values, references and nothing, lets exceptions through, nests, and works anywhere") {
  int x = 5;
  CHECK(weft::blocking([] { return 3; }) == 3);
  weft::run([&] {
    CHECK(weft::blocking([] { return std::make_unique<int>(4); }) != nullptr);
    int& r = weft::blocking([&]() -> int& { return x; });
    CHECK(&r == &x);
    weft::blocking([] {});
    CHECK_THROWS_AS(weft::blocking([] { throw std::out_of_range("x"); }), std::out_of_range);
    CHECK(weft::blocking([] { return weft::blocking([] { return 7; }); }) == 7);
    // Calls weft from inside: the goroutine comes back for that.
    chan<int> c;
    weft::go([=] { c.send(8); });
    CHECK(weft::blocking([=] { return *c.recv(); }) == 8);
    weft::yield();
  });
}

TEST_CASE("blocking: many at once, more than Ps, and they all come back") {
  weft::run([] {
    constexpr int n = 20;
    std::atomic<int> inside{0}, most{0};
    weft::wait_group w;
    for (int i = 0; i < n; ++i) {
      w.go([&] {
        for (int k = 0; k < 3; ++k) {
          weft::blocking([&] {
            int now = ++inside;
            int m = most;
            while (now > m && !most.compare_exchange_weak(m, now)) {}
            ::usleep(10000);
            --inside;
          });
          weft::yield();
        }
      });
    }
    w.wait();
    CHECK(most > fewer(n / 2));
  });
}

TEST_CASE("blocking: short calls by the thousand") {
  weft::run([] {
    std::atomic<int> sum{0};
    weft::wait_group w;
    for (int g = 0; g < 8; ++g) {
      w.go([&] {
        for (int i = 0; i < fewer(2000); ++i) sum += weft::blocking([] { return ::getppid() > 0 ? 1 : 1; });
      });
    }
    w.wait();
    CHECK(sum == 8 * fewer(2000));
  });
}

// --- lock_os_thread

TEST_CASE("lock_os_thread: the thread stays the same, and nobody else runs on it") {
  weft::run([] {
    std::atomic<bool> over{false};
    std::atomic<int> intruders{0}, moved{0};
    std::atomic<pid_t> locked_tid{0};
    auto locked = weft::spawn([&] {
      weft::lock_os_thread();
      weft::lock_os_thread();  // they nest
      pid_t mine = ::gettid();
      locked_tid = mine;
      for (int i = 0; i < fewer(500); ++i) {
        if (i % 50 == 0) weft::sleep(50us);
        weft::yield();
        moved += ::gettid() != mine;
      }
      weft::unlock_os_thread();
      for (int i = 0; i < 20; ++i) {
        weft::yield();
        moved += ::gettid() != mine;
      }
      locked_tid = 0;
      weft::unlock_os_thread();
      weft::yield();
    });
    weft::wait_group w;
    for (int g = 0; g < 4; ++g) {
      w.go([&] {
        while (!over) {
          if (::gettid() == locked_tid) ++intruders;
          weft::yield();
        }
      });
    }
    locked.join();
    over = true;
    w.wait();
    CHECK(moved == 0);
    CHECK(intruders == 0);
  });
}

TEST_CASE("lock_os_thread: channels, timers and blocking calls between locked goroutines") {
  weft::run([] {
    chan<int> c, d;
    weft::wait_group w;
    w.go([=] {
      weft::lock_os_thread();
      for (int v : c) d.send(v + 1);
      d.close();
      weft::unlock_os_thread();
    });
    weft::lock_os_thread();
    pid_t mine = ::gettid();
    for (int i = 0; i < 200; ++i) {
      c.send(i);
      if (*d.recv() != i + 1) FAIL("a wrong answer");
      if (i % 20 == 0) {
        weft::sleep(100us);
        weft::blocking([] { ::usleep(10); });
      }
    }
    CHECK(::gettid() == mine);
    weft::unlock_os_thread();
    c.close();
    w.wait();
  });
}

// main, which is locked to its thread, talks to another goroutine until `over` is true, or for `limit` words. Returns
// true if it ended because of `over`.
static bool talk(bool both_locked, const std::function<bool()>& over, int limit = std::numeric_limits<int>::max()) {
  chan<int> c, d;
  weft::wait_group w;
  w.go([=] {
    if (both_locked) weft::lock_os_thread();
    for (int v : c) d.send(v);
  });
  bool is_over = false;
  for (auto end = clock::now() + late; !is_over && limit > 0 && clock::now() < end; --limit) {
    c.send(1);
    d.recv();
    is_over = over();
  }
  c.close();
  w.wait();
  return is_over;
}

TEST_CASE("lock_os_thread: two that talk do not keep others from running, nor timers") {
  for (bool both : {true, false}) {
    weft::run(
        [both] {
          weft::lock_os_thread();
          std::atomic<bool> ran{false}, slept{false};
          weft::wait_group w;
          w.go([&] { ran = true; });
          CHECK(talk(both, [&] { return ran.load(); }));
          w.go([&] {
            weft::sleep(1ms);
            slept = true;
          });
          CHECK(talk(both, [&] { return slept.load(); }));
          w.wait();
        },
        {.procs = 1});
  }
}

TEST_CASE("lock_os_thread: the P goes straight from one locked goroutine to the next") {
  weft::run(
      [] {
        weft::lock_os_thread();
        talk(
            true, [] { return false; }, 1);
        const auto before = weft::runtime_stats().thread_wakeups;
        const auto words = static_cast<std::uint64_t>(fewer(1000));
        talk(
            true, [] { return false; }, static_cast<int>(words));
        CHECK(weft::runtime_stats().thread_wakeups - before < 3 * words);  // one there, one back, sometimes one more
      },
      {.procs = 1});
}

namespace {

// Returns the longest of several sleeps of 1 ms, beside as many goroutines as there are Ps, whose calls never wait.
std::chrono::nanoseconds longest_sleep_beside(int sleeps, auto calls) {
  std::atomic<bool> over{false};
  weft::wait_group all;
  for (unsigned i = 0; i < weft::procs(); ++i) {
    all.go([&] {
      weft::chan<int> c{1};
      while (!over) calls(c);
    });
  }
  std::chrono::nanoseconds longest{0};
  for (int i = 0; i < sleeps; ++i) {
    const auto begin = clock::now();
    weft::sleep(1ms);
    longest = std::max<std::chrono::nanoseconds>(longest, clock::now() - begin);
  }
  over = true;
  all.wait();
  return longest;
}

}  // namespace

TEST_CASE("sleepers run soon after they wake beside goroutines whose calls never wait") {
  for (unsigned procs : {1U, 2U}) {
    weft::run(
        [] {
          const auto sends = [](weft::chan<int>& c) {
            c.send(1);
            (void)c.recv();
          };
          const auto looks = [](weft::chan<int>& c) { weft::select(weft::on_recv(c), weft::on_default()); };
          CHECK(longest_sleep_beside(100, sends) < 150ms * slowdown);
          CHECK(longest_sleep_beside(100, looks) < 150ms * slowdown);
        },
        {.procs = procs});
  }
}

TEST_CASE("lock_os_thread: yield lets go first what is ready") {
  weft::run(
      [] {
        weft::lock_os_thread();
        for (int i = 0; i < 20; ++i) {
          int ran = 0;
          weft::wait_group w;
          for (int k = 0; k <= i % 3; ++k) w.go([&] { ++ran; });
          weft::yield();
          CHECK(ran == i % 3 + 1);
          w.wait();
        }
      },
      {.procs = 1});
}

TEST_CASE("lock_os_thread: ends with its goroutine, and main may return while it is locked") {
  weft::run([] {
    for (int i = 0; i < 20; ++i) weft::spawn([] { weft::lock_os_thread(); }).join();
    CHECK(eventually([] { return weft::num_goroutines() == 1; }));
    weft::lock_os_thread();
  });
  weft::run([] {
    weft::go([] {
      weft::lock_os_thread();
      weft::sleep(1h);
    });
    weft::yield();
  });
}

namespace {

int nice_of_this_thread() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

// Goroutines that keep a thread each look whether theirs is that nice. Each is started when the one before runs, so by
// the last thread that is not kept: the caller's. Returns how many differ.
int differ_from(int nice, int threads) {
  std::atomic<int> begun{0}, others{0};
  std::atomic<bool> over{false};
  weft::wait_group w;
  const auto end = clock::now() + late;
  for (int i = 1; i <= threads; ++i) {
    w.go([&] {
      others += nice_of_this_thread() != nice;
      ++begun;
      while (!over && clock::now() < end) ::usleep(100);
    });
    while (begun < i && clock::now() < end) ::usleep(100);
  }
  over = true;
  w.wait();
  return begun == threads ? others.load() : -1;
}

}  // namespace

// A new thread takes over what the one that starts it has changed.
TEST_CASE("lock_os_thread: what the goroutine changes of its thread stays with it") {
  const int nice = nice_of_this_thread();
  weft::run(
      [nice] {
        weft::spawn([nice] {
          weft::lock_os_thread();
          REQUIRE(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice + 1) == 0);
          CHECK(differ_from(nice, 6) == 0);
          // Ends while it is locked, and its thread with it.
        }).join();
        CHECK(differ_from(nice, 12) == 0);  // more than there were threads
      },
      {.procs = 16});
}

TEST_CASE("a thread of the program that starts goroutines hands nothing of itself on to weft's threads") {
  const int nice = nice_of_this_thread();
  weft::run(
      [nice] {
        weft::chan<int> differ(1);
        std::thread([&] {
          ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice + 1);
          differ.send(differ_from(nice, 6));
        }).join();
        CHECK(differ.recv() == 0);
      },
      {.procs = 16});
}

TEST_CASE("lock_os_thread: thread after thread ends with its goroutine, and the others are served") {
  for (unsigned procs : {1U, 2U}) {
    weft::run(
        [] {
          weft::wait_group w;
          chan<int> c;
          for (int i = 0; i < 4; ++i) {
            w.go([&, c] {
              for (int k = 0; k < fewer(100); ++k) c.send(k);
            });
          }
          w.go([&, c] {
            for (int k = 0; k < 4 * fewer(100); ++k) {
              if (k % 4 == 0) weft::spawn([] { weft::lock_os_thread(); }).join();
              if (k == 3 * fewer(100)) weft::lock_os_thread();  // from here on the others need one more
              c.recv();
            }
          });
          w.wait();
        },
        {.procs = procs, .max_threads = 2});
  }
}

// As long as the thread that ends counts, there are as many as there may be.
TEST_CASE("lock_os_thread: at the limit on threads, one comes at once for one that ends") {
  weft::run(
      [] {
        std::atomic<bool> over{false};
        weft::wait_group w;
        w.go([&] {
          weft::blocking([&] {
            while (!over) ::usleep(1000);
          });
        });
        weft::sleep(50ms);  // by now sysmon looks every 10 ms
        constexpr int times = 200;
        const auto began = clock::now();
        for (int i = 0; i < times; ++i) weft::spawn([] { weft::lock_os_thread(); }).join();
        CHECK(clock::now() - began < times * 5ms);
        over = true;
        w.wait();
      },
      {.procs = 2, .max_threads = 2});
}

TEST_CASE("lock_os_thread, set_procs and a locked goroutine that parks keep each other going") {
  weft::run([] {
    unsigned before = weft::procs();
    std::atomic<bool> over{false};
    weft::wait_group w;
    for (int g = 0; g < 3; ++g) {
      w.go([&] {
        weft::lock_os_thread();
        pid_t mine = ::gettid();
        while (!over) {
          weft::sleep(200us);
          if (::gettid() != mine) std::abort();
        }
      });
    }
    for (unsigned p : {1U, 4U, 2U, 1U, 3U}) {
      weft::set_procs(p);
      weft::sleep(1ms);
    }
    over = true;
    w.wait();
    weft::set_procs(before);
  });
}

TEST_CASE("lock_os_thread: as many goroutines as there may be threads, and they wait") {
  for (unsigned n : {1U, 2U, 4U}) {
    weft::run(
        [n] {
          chan<int> c;
          weft::wait_group w;
          for (unsigned i = 0; i < n; ++i) {
            w.go([=] {
              weft::lock_os_thread();
              pid_t mine = ::gettid();
              for (int k = 0; k < 5; ++k) {
                weft::sleep(200us);
                weft::yield();
                c.send(k);
                weft::blocking([] { ::usleep(100); });
                if (::gettid() != mine) std::abort();
              }
            });
          }
          for (unsigned i = 0; i < 5 * n; ++i) c.recv();
          w.wait();
          CHECK(weft::runtime_stats().threads <= n + 1);
        },
        {.max_threads = n});
  }
}

TEST_CASE("lock_os_thread: more goroutines than there may be threads take turns") {
  weft::run(
      [] {
        std::atomic<int> tied{0}, most{0};
        weft::wait_group w;
        for (int i = 0; i < 12; ++i) {
          w.go([&, i] {
            for (int k = 0; k < 4; ++k) {
              weft::lock_os_thread();
              int now = ++tied;
              for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {}
              if ((i + k) % 3 != 0) weft::sleep(100us);
              weft::yield();
              --tied;
              if (k == 3 && i % 2 == 0) return;  // the goroutine's end unties it, too
              weft::unlock_os_thread();
            }
          });
        }
        w.wait();
        CHECK(most <= 2);
        CHECK(weft::runtime_stats().threads <= 3);
      },
      {.max_threads = 2});
}

namespace {
std::atomic<int> waits_begun, waits_ended;

struct waits_at_its_end {
  bool used = false;
  ~waits_at_its_end() {
    if (!used) return;
    weft::sleep(1ms);
    weft::yield();
    chan<int> c;
    int v;
    if (c.recv_for(v, 1ms) == weft::recv_result::empty) ++waits_ended;
  }
};
thread_local waits_at_its_end of_this_thread;
}  // namespace

TEST_CASE("a thread_local's destructor may wait when a thread of the runtime ends") {
  waits_begun = waits_ended = 0;
  for (int i = 0; i < 3; ++i) {
    weft::run([] {
      weft::wait_group w;
      for (int g = 0; g < 10; ++g) {
        w.go([] {
          if (!std::exchange(of_this_thread.used, true)) ++waits_begun;
          weft::sleep(100us);
        });
      }
      w.wait();
    });
  }
  CHECK(waits_begun > 0);
  CHECK(waits_ended == waits_begun);
}

// --- many, deep

TEST_CASE("100,000 goroutines wait at once, and each gets its value") {
  weft::run([] {
    const int n = under_tsan ? 3000 : 100000;
    chan<int> in, out{64};
    for (int i = 0; i < n; ++i) {
      weft::go([=] { out.send(*in.recv()); });
    }
    CHECK(weft::num_goroutines() == static_cast<std::size_t>(n) + 1);
    weft::go([=] {
      for (int i = 0; i < n; ++i) in.send(i);
    });
    long sum = 0;
    for (int i = 0; i < n; ++i) sum += *out.recv();
    CHECK(sum == static_cast<long>(n) * (n - 1) / 2);
    CHECK(eventually([] { return weft::num_goroutines() == 1; }));
  });
}

TEST_CASE("goroutines come and go: stacks are reused") {
  weft::run([] {
    auto round = [] {
      weft::wait_group w;
      for (int i = 0; i < 500; ++i) w.go([] { weft::yield(); });
      w.wait();
    };
    round();
    auto before = weft::runtime_stats().stacks;
    for (int r = 0; r < fewer(40); ++r) round();
    CHECK(weft::runtime_stats().stacks <= before + 1500);
  });
}

TEST_CASE("skynet: a tree of goroutines adds up") {
  struct node {
    static long run(long number, int size) {
      if (size == 1) return number;
      std::vector<weft::task<long>> children;
      for (int i = 0; i < 10; ++i) children.push_back(weft::spawn(run, number + i * (size / 10), size / 10));
      long sum = 0;
      for (auto& c : children) sum += c.join();
      return sum;
    }
  };
  weft::run([] {
    const int n = under_tsan ? 1000 : 10000;
    CHECK(node::run(0, n) == static_cast<long>(n) * (n - 1) / 2);
  });
}

namespace {
__attribute__((noinline)) int deep(int n) {
  volatile char room[512];
  room[0] = static_cast<char>(n);
  if (n == 0) return 0;
  if (n % 50 == 0) weft::yield();
  return deep(n - 1) + 1 + (room[0] - static_cast<char>(n));
}
}  // namespace

TEST_CASE("deep recursion within the stack, and beyond the usual size with an option") {
  weft::run([] {
    // Frames are larger under a sanitizer.
    constexpr int n = 250 / (slowdown > 1 ? 4 : 1);
    weft::wait_group w;
    std::atomic<int> wrong{0};
    for (int g = 0; g < 20; ++g) {
      w.go([&] { wrong += deep(n) != n; });
    }
    w.wait();
    CHECK(wrong == 0);
    CHECK(weft::spawn({.name = "deep", .stack_size = 8 << 20}, deep, 6000).join() == 6000);
    CHECK(weft::spawn({.stack_size = 1}, [] { return 5; }).join() == 5);  // rounded up to what is needed
  });
}

// --- set_procs

TEST_CASE("set_procs: returns the old number, and refuses nonsense") {
  weft::run(
      [] {
        CHECK(weft::procs() == 3);
        CHECK(weft::set_procs(5) == 3);
        CHECK(weft::procs() == 5);
        CHECK(weft::set_procs(1) == 5);
        CHECK_THROWS_AS(weft::set_procs(0), std::invalid_argument);
        CHECK_THROWS_AS(weft::set_procs(100000), std::invalid_argument);
        CHECK(weft::procs() == 1);
      },
      {.procs = 3});
  CHECK(weft::procs() == 0);
  CHECK_THROWS_AS(weft::set_procs(2), std::logic_error);
  CHECK_THROWS_AS(weft::set_procs(0), std::invalid_argument);
}

TEST_CASE("set_procs: up and down under load, nothing is lost") {
  weft::run([] {
    unsigned before = weft::procs();
    std::atomic<bool> over{false};
    std::atomic<long> sent{0}, got{0};
    chan<int> c{8};
    weft::wait_group senders, receivers;
    for (int s = 0; s < 6; ++s) {
      senders.go([&, c, s] {
        for (int i = 0; !over; ++i) {
          c.send(i);
          sent += i;
          if (i % 7 == s) weft::yield();
          if (i % 50 == s) weft::sleep(20us);
        }
      });
      receivers.go([&, c] {
        for (int v : c) got += v;
      });
    }
    for (unsigned i = 0; i < static_cast<unsigned>(fewer(40)); ++i) {
      weft::set_procs(1 + (i * 7) % 9);
      if (i % 3 == 0) weft::sleep(1ms);
      if (i % 3 == 1) weft::yield();
    }
    over = true;
    senders.wait();
    c.close();
    receivers.wait();
    CHECK(sent == got);
    weft::set_procs(before);
  });
}

TEST_CASE("set_procs: by several goroutines and a thread at once") {
  weft::run([] {
    unsigned before = weft::procs();
    weft::wait_group w;
    for (unsigned g = 0; g < 4; ++g) {
      w.go([g] {
        for (unsigned i = 0; i < 10; ++i) weft::set_procs(1 + (g + i) % 5);
      });
    }
    std::thread t([] {
      for (unsigned i = 0; i < 10; ++i) weft::set_procs(1 + i % 4);
    });
    w.wait();
    weft::blocking([&] { t.join(); });
    weft::set_procs(before);
    CHECK(weft::procs() == before);
  });
}

TEST_CASE("set_procs: while goroutines compute or block without telling anybody") {
  weft::run([] {
    unsigned before = weft::procs();
    std::atomic<bool> over{false};
    weft::wait_group w;
    w.go([&] {
      while (!over) {}
    });
    w.go([&] {
      while (!over) ::usleep(1000);
    });
    w.go([&] {
      while (!over) weft::blocking([] { ::usleep(1000); });
    });
    weft::yield();
    auto begin = clock::now();
    for (unsigned p : {4U, 2U, 1U, 3U, 5U}) weft::set_procs(p);
    auto took = clock::now() - begin;
    over = true;
    w.wait();
    CHECK(took < late);
    weft::set_procs(before);
  });
}

// The goroutine is queued on a P whose current goroutine computes, so nobody has come for it yet. Most often that is
// the second P, which goes if n is 1.
TEST_CASE("set_procs: what is queued on a P goes on, whether the P stays or goes") {
  std::atomic<bool> all_went_on{true};
  for (int round = 0; round < 20 && all_went_on; ++round) {
    unsigned n = round % 2 == 0 ? 1 : 3;
    weft::run(
        [&] {
          std::atomic<bool> computes{false}, over{false}, ran{false};
          auto neighbour = weft::spawn([&] {
            weft::go([&] { ran = true; });
            computes = true;
            while (!over) {}
          });
          while (!computes) {}
          weft::set_procs(n);
          all_went_on = eventually([&] { return ran.load(); });
          over = true;
          neighbour.join();
          // Afterwards each P runs a goroutine.
          std::atomic<unsigned> running{0};
          weft::wait_group w;
          for (unsigned i = 0; i < n; ++i) {
            w.go([&] {
              weft::no_preemption alone;
              ++running;
              auto give_up = clock::now() + late;
              while (running < n && clock::now() < give_up) std::this_thread::sleep_for(50us);
              if (running < n) all_went_on = false;
            });
          }
          w.wait();
        },
        {.procs = 2});
  }
  CHECK(all_went_on);
}

// --- run()

TEST_CASE("run: returns what main returns") {
  CHECK(weft::run([] { return 7; }) == 7);
  CHECK(weft::run([] {}) == 0);
  CHECK(weft::run([] { return 'a'; }) == 'a');
  CHECK(weft::num_goroutines() == 0);
}

TEST_CASE("run: main is called as an rvalue, as go() and spawn() call what they are given") {
  struct once {
    std::unique_ptr<int> code;
    int operator()() && { return *code; }
  };
  CHECK(weft::run(once{std::make_unique<int>(3)}) == 3);
}

TEST_CASE("run: an exception that leaves main comes out, and the next run() works") {
  for (int i = 0; i < 3; ++i) {
    try {
      weft::run([] { throw std::out_of_range("main"); });
      FAIL("nothing was thrown");
    } catch (const std::out_of_range& e) {
      CHECK(std::string(e.what()) == "main");
    }
    CHECK_THROWS_AS(weft::run([] { throw 5; }), int);
  }
  CHECK(weft::run([] { return 1; }) == 1);
}

TEST_CASE("run: again and again, each from a clean start") {
  for (int i = 0; i < fewer(60); ++i) {
    CHECK(weft::run([i] {
            weft::wait_group w;
            std::atomic<int> n{0};
            for (int k = 0; k < 20; ++k) w.go([&] { ++n; });
            w.wait();
            CHECK(weft::this_goroutine::name() == "main");
            return i + n;
          }) == i + 20);
    CHECK(weft::num_goroutines() == 0);
  }
}

// The first 100 goroutines end, and AddressSanitizer frees what it kept for their locals. The second 100 are left
// behind before they begin, and run() looks at what they own.
TEST_CASE("run: goroutines with a used header and a closure on the stack are left behind before they begin") {
  weft::options one_p;
  one_p.procs = 1;
  for (int i = 0; i < 5; ++i) {
    weft::run(
        [] {
          weft::wait_group w;
          for (int k = 0; k < 100; ++k) w.go([] { weft::sleep(10us); });
          w.wait();
          std::array<int, 64> large{};
          for (int k = 0; k < 100; ++k) weft::go([large] { (void)large; });
        },
        one_p);
  }
}

TEST_CASE("run: inside a running runtime it is an error, from anywhere") {
  weft::run([] {
    CHECK_THROWS_AS(weft::run([] {}), std::logic_error);
    CHECK_THROWS_AS(weft::spawn([] { weft::run([] {}); }).join(), std::logic_error);
    std::atomic<bool> threw{false};
    std::thread t([&] {
      try {
        weft::run([] {});
      } catch (const std::logic_error&) {
        threw = true;
      }
    });
    weft::blocking([&] { t.join(); });
    CHECK(threw);
  });
}

TEST_CASE("run: from another thread than before") {
  int a = 0;
  std::thread([&] { a = weft::run([] { return weft::spawn([] { return 3; }).join(); }); }).join();
  CHECK(a == 3);
  CHECK(weft::run([] { return 4; }) == 4);
}

TEST_CASE("run: when main returns the others never run again") {
  static std::atomic<int> ran{0};
  weft::run([] {
    for (int i = 0; i < 10; ++i) {
      weft::go([] {
        for (;;) {
          ++ran;
          weft::yield();
        }
      });
      weft::go([] {
        weft::sleep(3ms);
        ++ran;
      });
      weft::go([] {
        chan<int> c;
        c.recv();
        ++ran;
      });
      weft::after_func(3ms, [] { ++ran; });
    }
    weft::sleep(1ms);
  });
  int at_end = ran;
  std::this_thread::sleep_for(8ms);
  CHECK(ran == at_end);
  weft::run([] { weft::sleep(5ms); });
  CHECK(ran == at_end);
}

TEST_CASE("run: waits for those that compute or block no longer than the grace, and they stop at their next call",
          "[leaves-threads]") {
  static std::atomic<bool> over{false};
  static std::atomic<int> begun{0};
  static std::atomic<int> went_on{0};
  static std::atomic<int> stopped_by_itself{0};
  bool into_another = GENERATE(false, true);
  over = false;
  begun = stopped_by_itself = 0;
  auto begin = clock::now();
  weft::run(
      [] {
        weft::go([] {
          ++begun;
          while (!over) {}
          ++stopped_by_itself;
          weft::yield();
          ++went_on;
        });
        weft::go([] {
          ++begun;
          while (!over) ::usleep(1000);
          ++stopped_by_itself;
          weft::yield();
          ++went_on;
        });
        weft::go([] {
          weft::blocking([] {
            ++begun;
            while (!over) ::usleep(1000);
            ++stopped_by_itself;
          });
          ++went_on;
        });
        while (begun < 3) weft::sleep(1ms);
      },
      {.shutdown_grace = 50ms});
  auto took = clock::now() - begin;
  CHECK(took >= 50ms);
  CHECK(took < 50ms + late);
  // A new runtime runs beside the goroutines that were left behind.
  CHECK(weft::run([] { return weft::spawn([] { return 5; }).join(); }) == 5);
  // They come back between two runtimes, or while the next one runs.
  auto come_back = [] {
    over = true;
    while (stopped_by_itself < 3) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(5ms);
  };
  if (into_another) {
    weft::run([&] { weft::blocking(come_back); });
  } else {
    come_back();
  }
  CHECK(went_on == 0);
  CHECK(weft::run([] { return weft::spawn([] { return 6; }).join(); }) == 6);
  CHECK(weft::num_goroutines() == 0);
}

TEST_CASE("run: a goroutine that stops in time does not cost the grace") {
  auto begin = clock::now();
  weft::run(
      [] {
        for (int i = 0; i < 4; ++i) {
          weft::go([] {
            auto end = clock::now() + 30ms;
            while (clock::now() < end) {}
          });
        }
        weft::yield();
      },
      {.shutdown_grace = 20s});
  CHECK(clock::now() - begin < 10s);
}

// --- goroutines

TEST_CASE("go: arguments are decay-copied, move-only ones are moved") {
  weft::run([] {
    chan<std::string> c;
    std::string s = "copied";
    auto p = std::make_unique<int>(3);
    char text[] = "decays";
    weft::go([=](std::string a) { c.send(std::move(a)); }, s);
    CHECK(c.recv() == "copied");
    CHECK(s == "copied");
    weft::go([=](const std::unique_ptr<int>& v) { c.send(std::to_string(*v)); }, std::move(p));
    CHECK(c.recv() == "3");
    CHECK_FALSE(p);  // NOLINT: that is what is tested
    weft::go([=](const char* t) { c.send(t); }, text);
    CHECK(c.recv() == "decays");
    weft::go([=](std::string& r) { c.send(r + "!"); }, std::ref(s));
    CHECK(c.recv() == "copied!");
  });
}

TEST_CASE("go: without a runtime it is an error, and nothing was started") {
  auto p = std::make_unique<int>(3);
  CHECK_THROWS_AS(weft::go([] { std::abort(); }), std::logic_error);
  CHECK_THROWS_AS(weft::spawn([] { std::abort(); }), std::logic_error);
  CHECK_THROWS_AS(weft::go([](const std::unique_ptr<int>&) {}, std::move(p)), std::logic_error);
}

TEST_CASE("go: from threads that weft did not start") {
  weft::run([] {
    constexpr int threads = 3;
    const int n = fewer(500);
    chan<int> c{16};
    std::vector<std::thread> ts;
    for (int t = 0; t < threads; ++t) {
      ts.emplace_back([=] {
        for (int i = 0; i < n; ++i) weft::go([=] { c.send(i); });
        weft::task<int> task = weft::spawn([] { return 9; });
        if (task.join() != 9) std::abort();
      });
    }
    long sum = 0;
    for (int i = 0; i < threads * n; ++i) sum += *c.recv();
    CHECK(sum == static_cast<long>(threads) * n * (n - 1) / 2);
    weft::blocking([&] {
      for (auto& t : ts) t.join();
    });
  });
}

TEST_CASE("go: a constructor that throws starts nothing and leaks nothing") {
  struct bomb {
    std::shared_ptr<int> held;
    explicit bomb(std::shared_ptr<int> h) : held(std::move(h)) {}
    bomb(const bomb& o) : held(o.held) { throw std::runtime_error("copy"); }
    void operator()() const { std::abort(); }
  };
  struct big_bomb : bomb {
    using bomb::bomb;
    std::array<char, 5000> room{};
  };
  weft::run([] {
    auto p = std::make_shared<int>(1);
    {
      bomb b(p);
      big_bomb big(p);
      auto before = weft::num_goroutines();
      for (int i = 0; i < 10; ++i) {
        CHECK_THROWS_AS(weft::go(b), std::runtime_error);
        CHECK_THROWS_AS(weft::spawn(b), std::runtime_error);
        CHECK_THROWS_AS(weft::go(big), std::runtime_error);
      }
      CHECK(weft::num_goroutines() == before);
    }
    CHECK(p.use_count() == 1);
    weft::spawn([] {}).join();
  });
}

TEST_CASE("go: closures of each size, alignment, and member functions") {
  weft::run([] {
    struct alignas(128) wide {
      int x;
    };
    struct counter {
      std::atomic<int> n{0};
      void add(int k) { n += k; }
    } c;
    weft::wait_group w;
    std::array<char, 1000> small{};
    std::array<char, 20000> large{};
    small[999] = 1;
    large[19999] = 2;
    std::atomic<int> sum{0};
    w.go([&, small] { sum += small[999]; });
    w.go([&, large] { sum += large[19999]; });
    w.go([&, v = wide{4}] { sum += reinterpret_cast<std::uintptr_t>(&v) % 128 == 0 ? v.x : -100; });
    w.wait();
    CHECK(sum == 7);
    weft::spawn(&counter::add, &c, 5).join();
    weft::spawn(&counter::add, std::ref(c), 6).join();
    CHECK(c.n == 11);
  });
}

TEST_CASE("go: the closure is destroyed when the function has returned") {
  weft::run([] {
    auto p = std::make_shared<int>(1);
    weft::go([p] {});
    CHECK(eventually([&] { return p.use_count() == 1; }));
  });
}

TEST_CASE("ids: every goroutine has its own, main has 1 in each run's beginning or more, threads have 0") {
  std::set<std::uint64_t> seen;
  for (int round = 0; round < 2; ++round) {
    weft::run([&] {
      CHECK(weft::this_goroutine::id() > 0);
      CHECK(seen.insert(weft::this_goroutine::id()).second);
      chan<std::uint64_t> ids{64};
      for (int i = 0; i < 500; ++i) weft::go([=] { ids.send(weft::this_goroutine::id()); });
      for (int i = 0; i < 500; ++i) {
        if (!seen.insert(*ids.recv()).second) FAIL("an id came twice");
      }
      auto t = weft::spawn([] { return weft::this_goroutine::id(); });
      std::uint64_t id = t.id();
      CHECK(t.join() == id);
    });
  }
  CHECK(weft::this_goroutine::id() == 0);
}

TEST_CASE("names: given at the start or later, the first 23 bytes are kept, they do not stay on the stack") {
  weft::run([] {
    CHECK(weft::this_goroutine::name() == "main");
    auto name = [] { return weft::this_goroutine::name(); };
    CHECK(weft::spawn({.name = "worker"}, name).join() == "worker");
    for (int i = 0; i < 5; ++i) CHECK(weft::spawn(name).join() == "");
    CHECK(weft::spawn([] {
            weft::this_goroutine::set_name("a name that is much too long for it");
            weft::yield();
            return weft::this_goroutine::name();
          }).join() == "a name that is much too");
    CHECK(weft::spawn({.name = "twenty-one bytes and \u20ac"}, name).join() == "twenty-one bytes and ");
    CHECK(weft::spawn({.name = "this is all of twenty \u00fc"}, name).join() == "this is all of twenty ");
  });
  CHECK(weft::this_goroutine::name() == "");
}

TEST_CASE("what a function returns is dropped, without a warning if it is nodiscard") {
  struct [[nodiscard]] status {};
  weft::run([] {
    auto f = [] { return status(); };
    weft::wait_group w;
    weft::task_group g;
    chan<int> c{2};
    weft::go([=] { return weft::spawn(f); });
    weft::go([f, large = std::array<char, 1000>()] {
      static_cast<void>(large);
      return f();
    });
    w.go(f);
    g.go(f);
    weft::after_func(0ms, f).stop_and_wait();
    weft::select(weft::on_send(c, 1, f));
    weft::select(weft::on_recv(c, f), weft::on_timeout(1h, f));
    weft::select(weft::on_recv(c, f), weft::on_default(f));
    w.wait();
    g.wait();
  });
}

TEST_CASE("num_goroutines counts user goroutines, main included") {
  weft::run([] {
    CHECK(weft::num_goroutines() == 1);
    chan<void> c;
    for (int i = 0; i < 10; ++i) weft::go([=] { c.recv(); });
    CHECK(weft::num_goroutines() == 11);
    c.close();
    CHECK(eventually([] { return weft::num_goroutines() == 1; }));
    weft::timer t{1ms};
    weft::ticker k{1ms};
    CHECK(weft::num_goroutines() == 1);
  });
  CHECK(weft::num_goroutines() == 0);
}

// --- tasks

TEST_CASE("task: join returns the result: values, references, move-only ones, nothing") {
  weft::run([] {
    int x = 1;
    CHECK(weft::spawn([] { return 42; }).join() == 42);
    CHECK(&weft::spawn([&]() -> int& { return x; }).join() == &x);
    int&& moved = weft::spawn([&]() -> int&& { return std::move(x); }).join();
    CHECK(&moved == &x);
    CHECK(*weft::spawn([] { return std::make_unique<int>(3); }).join() == 3);
    weft::spawn([] {}).join();
    CHECK(weft::spawn([](int a, int b) { return a - b; }, 7, 2).join() == 5);
    struct alignas(64) wide {
      int v;
    };
    CHECK(weft::spawn([] { return wide{9}; }).join().v == 9);
  });
}

TEST_CASE("task: join rethrows, once; wait does not throw") {
  weft::run([] {
    auto t = weft::spawn([] { throw std::out_of_range("task"); });
    t.wait();
    CHECK(t.done());
    CHECK(t.joinable());
    CHECK_THROWS_AS(t.join(), std::out_of_range);
    CHECK_FALSE(t.joinable());
    CHECK_THROWS_AS(t.join(), std::logic_error);
    CHECK_THROWS_AS(t.wait(), std::logic_error);
    CHECK_THROWS_AS(t.detach(), std::logic_error);
    weft::task<int> empty;
    CHECK_FALSE(empty.joinable());
    CHECK_THROWS_AS(empty.join(), std::logic_error);
  });
}

TEST_CASE("task: wait_for gives up in time, not early, and may be called again") {
  weft::run([] {
    chan<void> go_on;
    auto t = weft::spawn([=] { go_on.recv(); });
    CHECK_FALSE(t.done());
    auto begin = clock::now();
    CHECK_FALSE(t.wait_for(3ms));
    CHECK(clock::now() - begin >= 3ms);
    CHECK_FALSE(t.wait_for(0s));
    CHECK_FALSE(t.wait_for(-1s));
    go_on.close();
    CHECK(t.wait_for(1h));
    CHECK(t.wait_for(0s));
    CHECK(t.done());
    t.join();
  });
}

TEST_CASE("task: time limits that race with the end") {
  weft::run([] {
    for (int i = 0; i < fewer(1000); ++i) {
      auto t = weft::spawn([i] {
        weft::sleep(std::chrono::microseconds(i % 30));
        return i;
      });
      while (!t.wait_for(std::chrono::microseconds(i % 17))) {}
      if (t.join() != i) FAIL("a wrong result");
    }
  });
}

TEST_CASE("task: the destructor waits, and drops an exception nobody asked for") {
  weft::run([] {
    bool done = false;
    {
      auto t = weft::spawn([&] {
        weft::sleep(2ms);
        done = true;
      });
    }
    CHECK(done);
    {
      auto t = weft::spawn([] { throw std::runtime_error("nobody asks"); });
    }
    done = false;
    auto t = weft::spawn([] { return 1; });
    t = weft::spawn([&] {  // assignment waits for the task that it replaces
      done = true;
      return 2;
    });
    CHECK(t.join() == 2);
    weft::task<int> a = weft::spawn([] { return 3; });
    weft::task<int> b = std::move(a);
    CHECK_FALSE(a.joinable());  // NOLINT: that is what is tested
    CHECK(b.join() == 3);
  });
}

TEST_CASE("task: detached ones run on alone") {
  weft::run([] {
    chan<int> c;
    auto t = weft::spawn([=] {
      weft::sleep(1ms);
      c.send(4);
      return std::make_unique<int>(1);
    });
    t.detach();
    CHECK_FALSE(t.joinable());
    CHECK(c.recv() == 4);
    weft::spawn([] { return 1; }).detach();
  });
}

TEST_CASE("task: several goroutines and a thread wait for one") {
  weft::run([] {
    chan<void> go_on;
    auto t = weft::spawn([=] {
      go_on.recv();
      return 5;
    });
    std::atomic<int> saw{0};
    weft::wait_group w;
    for (int i = 0; i < 5; ++i) {
      w.go([&, i] {
        if (i % 2 == 0) {
          t.wait();
        } else {
          while (!t.wait_for(100us)) {}
        }
        saw += t.done();
      });
    }
    std::thread thread([&] {
      t.wait();
      ++saw;
    });
    weft::sleep(1ms);
    go_on.close();
    w.wait();
    weft::blocking([&] { thread.join(); });
    CHECK(saw == 6);
    CHECK(t.join() == 5);
  });
}

TEST_CASE("task: who joins many is not woken by each") {
  weft::run(
      [] {
        constexpr std::size_t n = 1000;
        std::vector<weft::task<void>> tasks;
        for (std::size_t i = 0; i < n; ++i) tasks.push_back(weft::spawn([] {}));
        const std::uint64_t before = weft::runtime_stats().parks;
        for (auto& t : tasks) t.join();
        CHECK(weft::runtime_stats().parks - before < n / 10);
      },
      {.procs = 1});
}

TEST_CASE("task: the closure is destroyed before it is done") {
  weft::run([] {
    struct slow {
      std::shared_ptr<std::atomic<bool>> gone;
      explicit slow(std::shared_ptr<std::atomic<bool>> g) : gone(std::move(g)) {}
      slow(slow&&) = default;
      ~slow() {
        if (!gone) return;
        weft::sleep(500us);
        *gone = true;
      }
      void operator()() const {}
    };
    for (int i = 0; i < 10; ++i) {
      auto gone = std::make_shared<std::atomic<bool>>(false);
      weft::spawn(slow{gone}).join();
      CHECK(*gone);
    }
  });
}

TEST_CASE("task: a result nobody takes is destroyed") {
  weft::run([] {
    auto p = std::make_shared<int>(1);
    {
      auto t = weft::spawn([p] { return p; });
    }
    CHECK(p.use_count() == 1);
    weft::spawn([p] { return p; }).detach();
    CHECK(eventually([&] { return p.use_count() == 1; }));
  });
}

TEST_CASE("task: one that outlives its run(), with a waiter that was left there, can be detached") {
  weft::task<int> t;
  weft::run([&] {
    t = weft::spawn([] {
      weft::sleep(1h);
      return 1;
    });
    weft::go([&] { t.wait(); });
    weft::yield();
  });
  CHECK(t.done());
  t.detach();
  CHECK_FALSE(t.joinable());
}

TEST_CASE("task: one that outlives its run() is done when it is destroyed") {
  weft::task<int> never, finished;
  weft::run([&] {
    never = weft::spawn([] {
      weft::sleep(1h);
      return 1;
    });
    finished = weft::spawn([] { return 2; });
    finished.wait();
  });
  CHECK(finished.join() == 2);
  CHECK(never.done());
  CHECK(never.wait_for(1h));
  CHECK_THROWS_AS(never.join(), weft::goroutine_exited);

  weft::task<void> again;
  weft::run([&] { again = weft::spawn([] { weft::sleep(1h); }); });
  weft::run([&] {
    CHECK(again.done());
    again = {};
  });
}

TEST_CASE("task_group: a thread that waits in one goes on when the run() ends") {
  std::atomic<int> begun{0};
  std::vector<std::thread> threads;
  auto in_a_group = [&](auto f) {
    threads.emplace_back([&, f] {
      weft::task_group g;
      g.set_limit(1);
      g.go([&] {
        ++begun;
        weft::sleep(1h);
      });
      f(g);
    });
  };
  weft::run([&] {
    in_a_group([](weft::task_group&) {});  // the group's destructor waits
    in_a_group([](weft::task_group& g) { g.wait(); });
    in_a_group([](weft::task_group& g) { CHECK_THROWS_AS(g.go([] {}), std::logic_error); });
    while (begun.load() < 3) weft::yield();
    weft::sleep(5ms);
  });
  for (auto& t : threads) t.join();
}

TEST_CASE("task_group: one made before run(), used in two, and with goroutines left behind") {
  weft::task_group g, left;
  for (int i = 0; i < 2; ++i) {
    weft::run([&] {
      bool ended = false;
      g.go([&] {
        weft::sleep(5ms);
        ended = true;
      });
      g.wait();
      CHECK(ended);
    });
  }
  weft::run([&] { left.go([] { weft::sleep(1h); }); });
  left.wait();
  weft::run([&] {
    CHECK_THROWS_AS(left.go([] {}), std::logic_error);
    left.wait();
  });
}

// --- exit_goroutine

TEST_CASE("exit_goroutine: runs the destructors and nothing after") {
  weft::run([] {
    std::atomic<int> destroyed{0}, went_on{0};
    struct guard {
      std::atomic<int>& n;
      ~guard() { ++n; }
    };
    auto inner = [&] {
      guard g{destroyed};
      weft::exit_goroutine();
    };
    weft::wait_group w;
    w.go([&] {
      guard g{destroyed};
      try {
        inner();
      } catch (const std::exception&) {
        ++went_on;  // what exit_goroutine throws is not a std::exception
      } catch (...) {
        ++destroyed;
        throw;
      }
      ++went_on;
    });
    w.wait();
    CHECK(destroyed == 3);
    CHECK(went_on == 0);
    CHECK(eventually([] { return weft::num_goroutines() == 1; }));
  });
}

TEST_CASE("exit_goroutine: in a task, join throws goroutine_exited") {
  weft::run([] {
    auto t = weft::spawn([]() -> int {
      weft::yield();
      weft::exit_goroutine();
    });
    t.wait();
    CHECK_THROWS_AS(t.join(), weft::goroutine_exited);
    auto v = weft::spawn([] { weft::exit_goroutine(); });
    CHECK_THROWS_AS(v.join(), weft::goroutine_exited);
  });
}

TEST_CASE("exit_goroutine: on a thread that is no goroutine it is an error") {
  CHECK_THROWS_AS(weft::exit_goroutine(), std::logic_error);
  CHECK_THROWS_AS(weft::lock_os_thread(), std::logic_error);
  CHECK_THROWS_AS(weft::unlock_os_thread(), std::logic_error);
}

// --- stats and the dump

TEST_CASE("stats: what they count") {
  weft::run(
      [] {
        auto a = weft::runtime_stats();
        CHECK(a.procs == 2);
        CHECK(a.goroutines == 1);
        CHECK(a.threads >= 1);
        weft::wait_group w;
        for (int i = 0; i < 100; ++i) {
          w.go([] {
            weft::yield();
            weft::sleep(100us);
          });
        }
        w.wait();
        chan<void> c;
        for (int i = 0; i < 5; ++i) weft::go([=] { c.recv(); });
        weft::sleep(2ms);
        auto b = weft::runtime_stats();
        CHECK(b.spawned - a.spawned == 105);
        CHECK(b.yields - a.yields >= 100);
        CHECK(b.parks - a.parks >= 100);
        CHECK(b.dispatches > a.dispatches);
        CHECK(b.goroutines == 6);
        CHECK(b.waiting >= 4);
        CHECK(b.waiting <= 6);
        CHECK(b.stacks >= 5);
        CHECK(b.idle_threads <= b.threads);
        weft::timer unused{1h};
        CHECK(weft::runtime_stats().timers == 0);  // nobody waits for its channel
        weft::func_timer t = weft::after_func(1h, [] {});
        CHECK(weft::runtime_stats().timers >= 1);
        c.close();
      },
      {.procs = 2});
  auto s = weft::runtime_stats();
  CHECK(s.goroutines == 0);
  CHECK(s.threads == 0);
}

TEST_CASE("stats: parks by reason, wake-ups, and their names") {
  std::set<std::string_view> names;
  std::size_t named = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    std::string_view name = weft::wait_reason_name(i);
    if (name.empty()) continue;
    ++named;
    names.insert(name);
  }
  CHECK(names.size() == named);
  auto of = [](const weft::stats& s, std::string_view name) {
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < s.parks_by_reason.size(); ++i) {
      if (weft::wait_reason_name(i) == name) n += s.parks_by_reason[i];
    }
    return n;
  };
  weft::run([&] {
    auto a = weft::runtime_stats();
    chan<int> c;
    weft::wait_group w;
    w.go([&] {
      for (int i = 0; i < 50; ++i) (void)c.recv();
    });
    for (int i = 0; i < 20; ++i) w.go([] { weft::sleep(1ms); });
    for (int i = 0; i < 50; ++i) {
      weft::yield();
      c.send(i);
    }
    w.wait();
    auto b = weft::runtime_stats();
    CHECK(of(b, "sleep") - of(a, "sleep") == 20);
    CHECK(of(b, "chan receive") - of(a, "chan receive") + of(b, "chan send") - of(a, "chan send") >= 1);
    CHECK(of(b, "wait_group wait") - of(a, "wait_group wait") <= 1);
    std::uint64_t sum = 0;
    for (std::uint64_t n : b.parks_by_reason) sum += n;
    CHECK(sum == b.parks);
    // All goroutines that parked since then have been woken. The difference of one: the housekeeper may park meanwhile.
    CHECK(b.wakeups - a.wakeups <= b.parks - a.parks + 1);
    CHECK(b.wakeups - a.wakeups + 1 >= b.parks - a.parks);
  });
}

TEST_CASE("stats: queue lengths") {
  weft::run(
      [] {
        weft::wait_group w;
        for (int i = 0; i < 100; ++i) w.go([] {});
        auto s = weft::runtime_stats();
        CHECK(s.runnable == s.local_queues + s.global_queue);
        CHECK(s.longest_queue == s.local_queues);  // there is only one P
        CHECK(s.runnable <= 101);                  // these and the housekeeper
        if (!under_tsan) CHECK(s.runnable >= 1);
        CHECK(s.newcomers == 0);
        w.wait();
        CHECK(weft::runtime_stats().local_queues == 0);
      },
      {.procs = 1});
}

TEST_CASE("stats: blocking calls, goroutines that lost their P, and what was asked of them") {
  std::atomic<bool> stop{false};
  weft::run(
      [&] {
        auto a = weft::runtime_stats();
        weft::wait_group w;
        w.go([&] {
          weft::blocking([&] {
            while (!stop) ::usleep(1000);
          });
        });
        w.go([&] {
          while (!stop.load(std::memory_order_relaxed)) {}
        });
        w.go([&] {
          while (!stop) ::usleep(200000);
        });
        auto all_there = [&] {
          auto s = weft::runtime_stats();
          return s.in_calls == 1 && s.detached == 2;
        };
        CHECK(eventually(all_there));
        auto b = weft::runtime_stats();
        CHECK(b.hogs <= 2);
        CHECK(b.running == 4);  // the three above and main
        CHECK(b.threads >= 4);
        CHECK(b.detachments - a.detachments >= 2);
        CHECK(b.preemptions_taken - a.preemptions_taken >= 2);
        CHECK(b.preemptions - a.preemptions >= 2);
        CHECK(b.retakes - a.retakes >= b.detachments - a.detachments);
        CHECK(b.thread_wakeups - a.thread_wakeups >= 2);
        stop = true;
        w.wait();
        b = weft::runtime_stats();
        CHECK(b.in_calls == 0);
        CHECK(b.detached == 0);
        CHECK(b.hogs == 0);
        // A goroutine that calls weft now and then gives way when it is asked, and keeps its P.
        auto end = clock::now() + late;
        auto taken = b.preemptions_taken;
        auto asked = weft::spawn([&] {
          while (weft::runtime_stats().preemptions_taken == taken && clock::now() < end) {}
        });
        asked.join();
        CHECK(weft::runtime_stats().preemptions_taken > taken);
      },
      {.procs = 1});
}

TEST_CASE("a goroutine that lost its P is not asked for the one that it gets") {
  weft::run(
      [] {
        bool none_too_many = false;  // one round is enough: a request made before it may be met in it
        for (int i = 0; i < 3; ++i) {
          auto a = weft::runtime_stats();
          std::atomic<bool> ran{false};
          weft::go([&] { ran = true; });
          while (!ran) {}  // loses the only P, which is free again when the other goroutine has ended
          compute_for(5ms);
          weft::yield();
          auto b = weft::runtime_stats();
          CHECK(b.detachments > a.detachments);
          none_too_many |= b.preemptions_taken - a.preemptions_taken <= b.preemptions - a.preemptions;
        }
        CHECK(none_too_many);
      },
      {.procs = 1});
}

TEST_CASE("a goroutine that computes without its P takes long turns of the processor, until it is back") {
  weft::run(
      [] {
        std::uint64_t with_p = slice_of_thread();
        if (with_p == 0) return;  // the kernel does not tell
        CHECK(with_p == 100'000);
        std::atomic<bool> stop{false};
        weft::wait_group others;
        others.go([&] {
          while (!stop) weft::yield();
        });
        auto end = clock::now() + late;
        while (slice_of_thread() == with_p && clock::now() < end) {}
        CHECK(slice_of_thread() == 20'000'000);
        stop = true;
        weft::yield();
        CHECK(slice_of_thread() == with_p);
        others.wait();
      },
      {.procs = 1});
}

TEST_CASE("stats: a thread that is locked to a goroutine waits for it") {
  weft::run([] {
    chan<void> c;
    auto t = weft::spawn([=] {
      weft::lock_os_thread();
      (void)c.recv();
    });
    CHECK(eventually([] { return weft::runtime_stats().locked_threads == 1; }));
    c.close();
    t.join();
    CHECK(eventually([] { return weft::runtime_stats().locked_threads == 0; }));
  });
}

TEST_CASE("stats: the histogram of scheduling latency") {
  weft::run(
      [] {
        auto count = [](const weft::stats& s, std::size_t from) {
          std::uint64_t n = 0;
          for (std::size_t i = from; i < s.latency.size(); ++i) n += s.latency[i];
          return n;
        };
        constexpr int n = 6400;
        auto a = weft::runtime_stats();
        weft::wait_group w;
        for (int i = 0; i < 250; ++i) w.go([] {});
        compute_for(20ms);  // the goroutines get the P after 10 ms, or 1 ms if something is overdue
        w.wait();
        auto b = weft::runtime_stats();
        constexpr std::size_t half_a_ms = 19;  // 2^19 ns
        CHECK(count(b, half_a_ms) - count(a, half_a_ms) >= 250 / 64);
        CHECK(count(b, 0) - count(a, 0) <= 250 / 64 + 10);
        chan<int> c;
        auto t = weft::spawn([=] {
          for (int i = 0; i < n; ++i) (void)c.recv();
        });
        for (int i = 0; i < n; ++i) c.send(i);
        t.join();
        auto d = weft::runtime_stats();
        CHECK(count(d, 0) - count(b, 0) >= n / 64);
      },
      {.procs = 1});
}

TEST_CASE("dump_goroutines: ids, names, states, reasons and traces of all goroutines") {
  weft::run([] {
    chan<int> c;
    weft::go({.name = "receiver"}, [=] { c.recv(); });
    weft::go({.name = "sender to nil"}, [] { chan<int>(weft::nil).send(1); });
    weft::go({.name = "sleeper"}, [] { weft::sleep(1h); });
    weft::go({.name = "two\nlines"}, [=] { c.recv(); });
    weft::go({.name = "chooser"}, [=] { weft::select(weft::on_recv(c), weft::on_recv(chan<int>(weft::nil))); });
    weft::sleep(a_while);
    std::FILE* f = std::tmpfile();
    REQUIRE(f);
    weft::dump_goroutines(f);
    std::rewind(f);
    std::string text(100000, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), f));
    std::fclose(f);
    INFO(text);
    CHECK(text.find("'main'") != std::string::npos);
    CHECK(text.find("'receiver' [chan receive") != std::string::npos);
    CHECK(text.find("'two?lines' [chan receive") != std::string::npos);
    CHECK(text.find("'sender to nil' [chan send (nil chan)") != std::string::npos);
    CHECK(text.find("'sleeper' [sleep") != std::string::npos);
    CHECK(text.find("'chooser' [select") != std::string::npos);
  });
}

TEST_CASE("dump_goroutines: into a stream that has no descriptor") {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* f = open_memstream(&text, &size);
  REQUIRE(f);
  std::fputs("before\n", f);
  weft::run([&] { weft::dump_goroutines(f); });
  std::fputs("after\n", f);
  std::fclose(f);
  std::string all(text, size);
  std::free(text);
  INFO(all);
  CHECK(all.starts_with("before\ngoroutine "));
  CHECK(all.find("'main' [running]") != std::string::npos);
  CHECK(all.ends_with("after\n"));
}

static_assert(std::is_aggregate_v<weft::options>);
static_assert(std::is_convertible_v<decltype(weft::options::shutdown_grace), std::chrono::nanoseconds>);
static_assert(weft::options{}.shutdown_grace == 1s && weft::options{}.force_tick_period / 2 == 1min);
static_assert(weft::options{.shutdown_grace = std::chrono::hours::max()}.shutdown_grace.count() == INT64_MAX);

TEST_CASE("options: a shutdown_grace for ever is one") {
  for (const weft::options& o : {weft::options{.procs = 2, .shutdown_grace = std::chrono::nanoseconds::max()},
                                 weft::options{.procs = 2,
                                 .force_tick_period = std::chrono::hours::max(),
                                 .shutdown_grace = std::chrono::seconds::max()}}) {
    std::atomic<bool> ended{false};
    weft::run(
        [&] {
          weft::go([&] {
            compute_for(100ms);
            ended = true;
          });
          weft::sleep(a_while);
        },
        o);
    CHECK(ended);
  }
}

TEST_CASE("options: too many Ps, and no thread, are refused") {
  CHECK_THROWS_AS(weft::run([] {}, {.procs = 1025}), std::invalid_argument);
  CHECK_THROWS_AS(weft::run([] {}, {.max_threads = 0}), std::invalid_argument);
}

TEST_CASE("options: negative durations are refused") {
  for (const weft::options& o : {weft::options{.force_tick_period = -1ns}, weft::options{.shutdown_grace = -1ns},
                                 weft::options{.shutdown_grace = std::chrono::hours::min()}}) {
    CHECK_THROWS_AS(weft::run([] {}, o), std::invalid_argument);
  }
}

TEST_CASE("task_group: the first exception cancels the context and comes out of wait(), once") {
  weft::run([] {
    weft::task_group g;
    chan<int> thrown;
    g.go([&] {
      g.context().done().recv();
      thrown.recv();
      throw std::runtime_error("second");
    });
    g.go([] { throw std::logic_error("first"); });
    g.context().done().recv();
    CHECK(g.context().err() == std::errc::operation_canceled);
    thrown.send(1);
    CHECK_THROWS_AS(g.wait(), std::logic_error);
    g.wait();  // the second exception was dropped

    // The group is used again; its context stays cancelled.
    std::atomic<int> ran{0};
    g.go([&] { ++ran; });
    g.wait();
    CHECK(ran == 1);
    CHECK(g.context().err());
  });
}

TEST_CASE("task_group: destroying it cancels the context, waits, and drops an exception") {
  weft::run([] {
    std::atomic<bool> ended{false};
    {
      weft::task_group g;
      g.go([&, ctx = g.context()] {
        ctx.done().recv();
        weft::sleep(2ms);
        ended = true;
        throw std::runtime_error("nobody asks");
      });
    }
    CHECK(ended);
  });
}

TEST_CASE("task_group: its context ends with the parent's") {
  weft::run([] {
    auto parent = weft::with_cancel(weft::background());
    weft::task_group g(parent.ctx);
    g.go([ctx = g.context()] { ctx.done().recv(); });
    CHECK_FALSE(g.context().err());
    parent.cancel();
    g.wait();
    CHECK(g.context().err() == std::errc::operation_canceled);
  });
}

TEST_CASE("task_group: no more than the limit run at once") {
  weft::run([] {
    weft::task_group g;
    CHECK_THROWS_AS(g.set_limit(0), std::invalid_argument);
    g.set_limit(3);
    std::atomic<int> running{0}, most{0};
    for (int i = 0; i < 20; ++i) {
      g.go([&] {
        const int now = ++running;
        for (int m = most; m < now && !most.compare_exchange_weak(m, now);) {}
        weft::sleep(500us);
        --running;
      });
    }
    g.wait();
    CHECK(most == 3);
  });
}

TEST_CASE("task_group: a limit changes only while no goroutine of the group runs") {
  weft::run([] {
    weft::task_group g;
    weft::event go_on;
    g.set_limit(1);
    g.go([&] { go_on.wait(); });
    CHECK_THROWS_AS(g.set_limit(2), std::logic_error);
    go_on.set();
    g.wait();
    g.set_limit(2);
    weft::latch both(2);
    for (int i = 0; i < 2; ++i) g.go([&] { both.arrive_and_wait(); });
    g.wait();
  });
}

TEST_CASE("task_group: the largest limit is none") {
  weft::run([] {
    weft::task_group g;
    g.set_limit(SIZE_MAX);
    std::atomic<int> ran{0};
    for (int i = 0; i < 10; ++i) g.go([&] { ++ran; });
    g.wait();
    CHECK(ran == 10);
  });
}

TEST_CASE("dump_goroutines into a full pipe that a goroutine reads later") {
  weft::run([] {
    int fds[2];
    REQUIRE(::pipe(fds) == 0);
    const int room = ::fcntl(fds[1], F_SETPIPE_SZ, 4096);
    const std::string full(static_cast<std::size_t>(room), ' ');
    REQUIRE(::write(fds[1], full.data(), full.size()) == room);
    auto size = weft::spawn([&] {
      weft::sleep(20ms);
      std::size_t all = 0;
      char part[512];
      for (ssize_t n; (n = weft::blocking([&] { return ::read(fds[0], part, sizeof part); })) > 0;) {
        all += static_cast<std::size_t>(n);
      }
      return all;
    });
    std::FILE* out = ::fdopen(fds[1], "w");
    weft::dump_goroutines(out);
    std::fclose(out);
    CHECK(size.join() > full.size());
    ::close(fds[0]);
  });
}
