// Everything at once, in random mixes, for a while; what goes in must come out.
//
//   WEFT_TEST_SEED=n     the mix of an earlier run (each run prints its seed; threads still race differently)
//   WEFT_TEST_SECONDS=s  how long each case runs
//
// A case that hangs is ended by SIGQUIT, which shows every goroutine.

#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>
#include <weft/weft.hpp>

using namespace weft::test;
using weft::chan;
using weft::on_recv;
using weft::on_send;
using weft::on_timeout;
using weft::recv_result;
using weft::select;

namespace {

double seconds() {
  const char* s = std::getenv("WEFT_TEST_SECONDS");
  return s ? std::atof(s) : 0.7;
}

// One case: its seed, its end, and the alarm that ends it if it hangs.
class stress {
 public:
  stress() {
    const char* s = std::getenv("WEFT_TEST_SEED");
    seed_ = s ? std::strtoull(s, nullptr, 10) : std::random_device{}();
    std::cerr << "WEFT_TEST_SEED=" << seed_ << '\n';
    std::signal(SIGALRM, [](int) { ::kill(::getpid(), SIGQUIT); });
    ::alarm(static_cast<unsigned>(seconds()) + 45);
    end_ = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds()));
  }
  ~stress() { ::alarm(0); }

  bool goes_on() const { return clock::now() < end_; }
  std::uint64_t seed() const { return seed_; }

 private:
  std::uint64_t seed_;
  clock::time_point end_;
};

class dice {
 public:
  dice(const stress& s, int who) : random_(s.seed() * 1000003 + static_cast<std::uint64_t>(who)) {}
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::chrono::microseconds us(unsigned most) { return std::chrono::microseconds(below(most)); }

 private:
  std::mt19937_64 random_;
};

// Does something that may come between two operations.
void pause(dice& d) {
  switch (d.below(40)) {
    case 0: weft::sleep(d.us(200)); break;
    case 1: weft::blocking([&] { ::usleep(d.below(100)); }); break;
    case 2: ::usleep(d.below(50)); break;
    case 3: compute_for(d.us(50)); break;
    case 4:
    case 5:
    case 6: weft::yield(); break;
    default: break;
  }
}

}  // namespace

TEST_CASE("stress: channels in each form, with pauses of each kind, while the number of Ps changes") {
  stress s;
  weft::run([&] {
    unsigned before = weft::procs();
    std::vector<chan<int>> c;
    dice setup(s, 0);
    for (int i = 0; i < 5; ++i) c.emplace_back(setup.below(4));
    std::atomic<long> sent{0}, got{0};
    std::atomic<bool> receivers_end{false};
    weft::wait_group senders, receivers;
    for (int a = 1; a <= 12; ++a) {
      senders.go([&, a] {
        dice d(s, a);
        while (s.goes_on()) {
          auto& x = c[d.below(5)];
          auto& y = c[d.below(5)];
          int v = static_cast<int>(d.below(1000));
          switch (d.below(5)) {
            case 0: {
              x.send(v);
              sent += v;
              break;
            }
            case 1:
              if (x.try_send(v)) sent += v;
              break;
            case 2:
              if (x.send_for(v, d.us(60))) sent += v;
              break;
            case 3: select(on_send(x, v, [&] { sent += v; }), on_send(y, v + 1, [&] { sent += v + 1; })); break;
            default:
              select(on_send(x, v, [&] { sent += v; }), on_recv(y, [&](int r) { got += r; }), on_timeout(d.us(60)));
          }
          pause(d);
        }
      });
      receivers.go([&, a] {
        dice d(s, 100 + a);
        auto add = [&](std::optional<int> v) {
          if (v) got += *v;
        };
        while (!receivers_end) {
          auto& x = c[d.below(5)];
          auto& y = c[d.below(5)];
          int v;
          switch (d.below(4)) {
            case 0:
              if (x.try_recv(v) == recv_result::value) got += v;
              break;
            case 1:
              if (x.recv_for(v, d.us(60)) == recv_result::value) got += v;
              break;
            default: select(on_recv(x, add), on_recv(y, add), on_timeout(d.us(100)));
          }
          pause(d);
        }
        // What is left in the buffers is counted below.
      });
    }
    dice d(s, 1000);
    while (s.goes_on()) {
      weft::set_procs(1 + d.below(6));
      weft::sleep(d.us(5000));
    }
    senders.wait();
    receivers_end = true;
    receivers.wait();
    for (auto& x : c) {
      int v;
      while (x.try_recv(v) == recv_result::value) got += v;
    }
    CHECK(sent == got);
    CHECK(sent > 0);
    weft::set_procs(before);
  });
}

TEST_CASE("stress: tasks that start tasks, throw, end themselves and outlive time limits") {
  stress s;
  struct tree {
    const stress& s;
    std::atomic<long>& threw;
    // Returns the number of nodes below, including this one. A node that throws or ends itself counts as one.
    long operator()(int depth, int who) const {
      dice d(s, who);
      pause(d);
      std::vector<weft::task<long>> children;
      if (depth > 0) {
        for (unsigned i = 0, n = d.below(5); i < n; ++i) {
          children.push_back(weft::spawn(*this, depth - 1, who * 7 + static_cast<int>(i) + 1));
        }
      }
      long sum = 1;
      bool skip_one = d.below(8) == 0;
      for (auto& c : children) {
        if (skip_one) {  // the task's destructor waits
          skip_one = false;
          continue;
        }
        while (d.below(3) == 0 && !c.wait_for(d.us(100))) {}
        try {
          sum += c.join();
        } catch (const std::runtime_error&) {
          ++threw;
          ++sum;
        }
      }
      pause(d);
      if (depth < 4 && d.below(16) == 0) throw std::runtime_error("a branch");
      if (depth < 4 && d.below(16) == 0) weft::exit_goroutine();
      return sum;
    }
  };
  weft::run([&] {
    long rounds = 0, nodes = 0;
    std::atomic<long> threw{0};
    while (s.goes_on()) {
      nodes += weft::spawn(tree{s, threw}, 4, static_cast<int>(++rounds)).join();
    }
    CHECK(nodes >= rounds);
    CHECK(eventually([] { return weft::num_goroutines() == 1; }));
  });
}

TEST_CASE("stress: timers of each kind, stopped and reset at random") {
  stress s;
  weft::run([&] {
    std::atomic<long> armed{0}, taken_back{0}, ran{0}, stale{0}, early{0};
    std::vector<weft::func_timer> funcs;
    for (int i = 0; i < 6; ++i) {
      ++armed;
      funcs.push_back(weft::after_func(std::chrono::microseconds(100 * i), [&] { ++ran; }));
    }
    weft::wait_group w;
    for (int a = 1; a <= 8; ++a) {
      w.go([&, a] {
        dice d(s, a);
        weft::timer mine{1h};
        weft::ticker tick{std::chrono::microseconds(100 + d.below(300))};
        while (s.goes_on()) {
          switch (d.below(8)) {
            case 0: taken_back += funcs[d.below(6)].stop(); break;
            case 1:
            case 2:
              ++armed;
              taken_back += funcs[d.below(6)].reset(d.us(300));
              break;
            case 3: {
              auto at = clock::now() + d.us(200);
              weft::sleep_until(at);
              early += clock::now() < at;
              break;
            }
            case 4: {
              mine.reset(d.us(50));
              pause(d);
              mine.stop();
              weft::time_point v;
              stale += mine.channel().try_recv(v) != recv_result::empty;
              break;
            }
            case 5: {
              auto before = clock::now();
              mine.reset(100us);
              weft::time_point v;
              if (mine.channel().recv(v)) stale += v < before + 100us;
              break;
            }
            case 6: {
              std::optional<weft::time_point> v;
              select(on_recv(tick.channel(), v), on_timeout(d.us(200)));
              if (v) early += clock::now() < *v;
              break;
            }
            default: {
              weft::timer dropped{d.us(100)};
              (void)weft::after(d.us(100));
            }
          }
          pause(d);
        }
      });
    }
    dice d(s, 1000);
    unsigned before = weft::procs();
    while (s.goes_on()) {
      weft::set_procs(1 + d.below(5));
      weft::sleep(d.us(3000));
    }
    w.wait();
    CHECK(eventually([&] { return armed == taken_back + ran; }));
    for (auto& f : funcs) f.stop_and_wait();
    CHECK(stale == 0);
    CHECK(early == 0);
    weft::set_procs(before);
  });
}

TEST_CASE("stress: locks and channels between goroutines, locked goroutines and threads") {
  stress s;
  weft::run([&] {
    weft::mutex m;
    weft::shared_mutex rw;
    weft::semaphore sem{3};
    long counter = 0;
    std::atomic<long> expected{0}, inside{0}, too_many{0}, torn{0};
    std::array<long, 2> pair{};
    chan<int> c{2};
    std::atomic<long> sent{0}, got{0};
    std::atomic<int> busy{0};

    auto work = [&](int who, bool may_spawn) {
      dice d(s, who);
      while (s.goes_on()) {
        switch (d.below(7)) {
          case 0: {
            std::lock_guard hold(m);
            ++counter;
            ++expected;
            if (may_spawn && d.below(20) == 0) weft::yield();
            break;
          }
          case 1: {
            std::unique_lock hold(rw);
            ++pair[0];
            if (may_spawn && d.below(20) == 0) weft::yield();
            ++pair[1];
            break;
          }
          case 2: {
            std::shared_lock hold(rw);
            torn += pair[0] != pair[1];
            break;
          }
          case 3: {
            sem.acquire();
            too_many += ++inside > 3;
            if (may_spawn) pause(d);
            --inside;
            sem.release();
            break;
          }
          case 4: {
            int v = static_cast<int>(d.below(100));
            if (c.send_for(v, d.us(100))) sent += v;
            break;
          }
          case 5: {
            int v;
            if (c.recv_for(v, d.us(100)) == recv_result::value) got += v;
            break;
          }
          default:
            if (busy > 500) break;  // threads start goroutines faster than these end
            ++busy;
            weft::go([&, who] {
              dice e(s, who + 77);
              pause(e);
              --busy;
            });
        }
        if (may_spawn) pause(d);
      }
    };
    weft::wait_group w;
    for (int a = 1; a <= 8; ++a) {
      w.go([&, a] {
        if (a <= 2) weft::lock_os_thread();
        work(a, true);
      });
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) threads.emplace_back([&, t] { work(100 + t, false); });
    w.wait();
    weft::blocking([&] {
      for (auto& t : threads) t.join();
    });
    CHECK(eventually([&] { return busy == 0; }));
    int v;
    while (c.try_recv(v) == recv_result::value) got += v;
    CHECK(counter == expected);
    CHECK(sent == got);
    CHECK(too_many == 0);
    CHECK(torn == 0);
    CHECK(pair[0] == pair[1]);
  });
}

TEST_CASE("stress: run() again and again, ended in the middle of everything") {
  stress s;
  // Used in all rounds: goroutines that an ended run() left behind must not be in the way.
  chan<int> shared{1}, plain;
  auto m = std::make_shared<weft::shared_mutex>();
  int rounds = 0;
  while (s.goes_on()) {
    ++rounds;
    weft::options o;
    o.procs = 1 + static_cast<unsigned>(rounds) % 5;
    int code = weft::run(
        [&, rounds] {
          dice d(s, rounds);
          for (int a = 0; a < 12; ++a) {
            weft::go([=, &s] {
              dice e(s, rounds * 100 + a);
              for (;;) {
                switch (e.below(6)) {
                  case 0: (void)shared.send_for(1, e.us(100)); break;
                  case 1: {
                    int v;
                    (void)shared.recv_for(v, e.us(100));
                    break;
                  }
                  case 2: {
                    std::shared_lock hold(*m);
                    break;
                  }
                  case 3: select(on_send(plain, 1), on_recv(plain), on_timeout(e.us(300))); break;
                  case 4: weft::spawn([] { weft::yield(); }).join(); break;
                  default: weft::timer{e.us(100)}.stop();
                }
                pause(e);
              }
            });
          }
          weft::after_func(d.us(300), [] {});
          weft::sleep(d.us(2000));
          if (d.below(4) == 0) weft::set_procs(1 + d.below(4));
          chan<int> mine;
          weft::go([=] { mine.send(rounds); });
          return *mine.recv();
        },
        o);
    if (code != rounds) FAIL("run() number " << rounds << " returned " << code);
    if (weft::num_goroutines() != 0) FAIL("goroutines are left");
  }
  CHECK(rounds > 0);
}
