// The scheduler as a whole, in interleavings of its threads that a seed determines (support/simulation.hpp). The models
// (tests/model) are exhaustive, but only of what somebody wrote down; this is the code itself.

#include "tests/support/simulation.hpp"
#include "sched/enter.hpp"
#include "sched/lifecycle.hpp"
#include "sched/park.hpp"
#include "sched/preempt.hpp"
#include "sched/proc.hpp"
#include "sched/syscall.hpp"
#include "sched/threads.hpp"
#include "sched/world.hpp"
#include "tests/support/catch.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>

using weft::chan;
using weft::rt::microsecond;
using weft::rt::millisecond;
using weft::rt::nanos;
using weft::rt::present_run;
using weft::test::interleaving;
using weft::test::seeds;
using weft::test::simulation;

namespace {

std::string simulate(std::uint64_t seed, const std::function<void(simulation&)>& main) {
  simulation s(seed);
  s.add_weft([&] { main(s); });
  return s.run();
}

// Sleeps, and checks that it was not woken early.
void sleep_for(nanos d) {
  nanos until = interleaving::now() + d;
  weft::sleep(std::chrono::nanoseconds(d));
  interleaving::check(interleaving::now() >= until, "woken early");
}

// Sleeps for d so many times. Returns how late it was altogether.
nanos late_after_sleeps(int times, nanos d) {
  nanos late = 0;
  for (int k = 0; k < times; ++k) {
    const nanos due = interleaving::now() + d;
    weft::sleep(std::chrono::nanoseconds(d));
    late += interleaving::now() - due;
  }
  return late;
}

// Called by goroutines. Checks that nobody else has, or takes, the P of an M that is in the runtime.
void has_its_p() {
  weft::rt::runtime_scope scope;
  weft::rt::M* m = scope.m();
  weft::rt::P* p = m->p.load(weft::rt::relaxed);
  interleaving::check(p && p->m.load(weft::rt::relaxed) == m, "another M has its P");
  for (int i = 0; i < 5; ++i) weft::rt::interleave_point();
  interleaving::check(m->p.load(weft::rt::relaxed) == p && p->m.load(weft::rt::relaxed) == m, "its P was taken");
}

}  // namespace

// append-check-wake: channels make goroutines ready, in all the places where they do so.
TEST_CASE("simulation: nobody sleeps beside goroutines that are ready") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    REQUIRE(simulate(seed, [](simulation& s) {
              weft::wait_group w;
              chan<int> c, d(2);
              for (int i = 0; i < 3; ++i) {
                w.go([&, c, d] {
                  for (int k = 0; k < 4; ++k) {
                    if (s.one_in(2)) simulation::compute(s.up_to(200 * microsecond));
                    s.one_in(2) ? c.send(k) : d.send(k);
                  }
                });
              }
              for (int k = 0; k < 12; ++k) {
                weft::select(weft::on_recv(c), weft::on_recv(d));
                if (s.one_in(4)) weft::yield();
              }
              w.wait();
            }) == "");
  }
}

// Ps that collide at a channel leave their ready goroutines to each other (help_trial.cpp).
TEST_CASE("simulation: nobody sleeps beside goroutines that another P has left") {
  for (std::uint64_t seed = 0; seed < seeds(500); ++seed) {
    INFO("seed " << seed);
    REQUIRE(simulate(seed, [](simulation& s) {
              constexpr int each = 4, values = 8;
              weft::wait_group senders, receivers;
              chan<int> c(3);
              for (int i = 0; i < each; ++i) {
                senders.go([&, c] {
                  for (int k = 0; k < values; ++k) {
                    c.send(k);
                    if (s.one_in(4)) weft::yield();
                  }
                });
                receivers.go([c] {
                  for (int k = 0; k < values; ++k) c.recv();
                });
              }
              senders.wait();
              receivers.wait();
            }) == "");
  }
}

TEST_CASE("simulation: nobody sleeps beside goroutines that a plain thread makes ready") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    chan<int> in, out;
    s.add_weft([&] {
      for (int k = 0; k < 6; ++k) {
        in.recv();
        if (s.one_in(2)) sleep_for(s.up_to(300 * microsecond));
        out.send(k);
      }
    });
    s.add([&] {
      for (int k = 0; k < 6; ++k) {
        if (s.one_in(2)) simulation::compute(s.up_to(300 * microsecond));
        in.send(k);
        out.recv();
      }
    });
    REQUIRE(s.run() == "");
  }
}

namespace {

// Some goroutines linger between the look whether they are alone and what they do then.
class hesitant_lock : public weft::rt::goroutine_lock {
 public:
  explicit hesitant_lock(simulation& of) : goroutine_lock(weft::rt::lock_rank::channel), s_(of) {}

  void acquire_lock() noexcept {
    if (!weft::rt::alone.load(weft::rt::relaxed)) return lock::acquire_lock();
    if (s_.one_in(8)) simulation::compute(s_.up_to(80 * microsecond));
    if (!take_plainly()) lock::acquire_lock();
  }

 private:
  simulation& s_;
};

struct guarded {
  simulation& s;
  hesitant_lock mutex{s};
  bool held = false;  // not atomic: the lock must suffice
  int times = 0;

  void begin() {
    interleaving::check(!std::exchange(held, true), "two holders");
    linger();
    ++times;
  }
  void end() { held = false; }
  void linger() {
    for (int i = 0; i < 12; ++i) weft::rt::interleave_point();
    if (s.one_in(8)) simulation::compute(s.up_to(80 * microsecond));
  }
  void hold() {
    weft::rt::runtime_scope scope;
    weft::rt::lock_guard holds(mutex);
    begin();
    end();
  }
  // The commit step gives the lock back.
  void hold_and_park() {
    weft::rt::runtime_scope scope;
    mutex.acquire_lock();
    begin();
    scope.resumed_on(weft::rt::park(
        scope.m(),
        [](weft::rt::G* g, void* self) {
          auto* it = static_cast<guarded*>(self);
          it->linger();
          it->end();
          it->mutex.release_lock();
          if (g->claim(weft::rt::no_ticket)) weft::rt::ready(g);
        },
        this, weft::rt::wait_reason::sleep));
  }
};

}  // namespace

// "alone" (sched/alone.cpp): goroutines, some of which park with the lock, and plain threads that come later, while the
// number of Ps changes.
TEST_CASE("simulation: a goroutine_lock has one holder, also when plain threads come to the only P") {
  for (std::uint64_t seed = 0; seed < seeds(3000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed * 3 + (seed % 4 == 0));  // one P, most often
    guarded g{s};
    bool over = false;
    s.add_weft([&] {
      weft::wait_group w;
      for (int i = 0; i < 2; ++i) {
        w.go([&] {
          for (int k = 0; k < 6; ++k) {
            s.one_in(2) ? g.hold() : g.hold_and_park();
            if (s.one_in(4)) simulation::compute(s.up_to(30 * microsecond));
          }
        });
      }
      if (s.one_in(3)) {
        weft::set_procs(2);
        weft::set_procs(1);
      }
      w.wait();
      over = true;
    });
    for (int i = 0; i < 2; ++i) {
      s.add([&] {
        simulation::compute(s.up_to(40 * microsecond));
        for (int k = 0; k < 4 && !over; ++k) g.hold();
      });
    }
    REQUIRE(s.run() == "");
    REQUIRE(g.times >= 12);
  }
}

TEST_CASE(
    "simulation: a goroutine_lock has one holder while there is one P again and again, and plain threads are there") {
  for (std::uint64_t seed = 0; seed < seeds(600); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    guarded g{s};
    bool over = false;
    s.add_weft([&] {
      for (int changes = 0; changes < 20; ++changes) {
        weft::set_procs(2);
        weft::set_procs(1);
        g.hold();
      }
      over = true;
    });
    for (int i = 0; i < 3; ++i) {
      s.add([&] {
        while (!over) g.hold();
      });
    }
    REQUIRE(s.run() == "");
  }
}

// "alone", with several Ps: two goroutines talk on one of them. Meanwhile others come and go: helpers, sleepers,
// goroutines that come back from calls or from the poller, some of them tied to their threads, goroutines that stop the
// world, and a plain thread.
TEST_CASE("simulation: a goroutine_lock has one holder while Ps come to the one that was alone, and go") {
  int alone = 0;
  int fd[2];
  REQUIRE(::pipe2(fd, O_NONBLOCK) == 0);
  for (std::uint64_t seed = 0; seed < seeds(4000); ++seed) {
    INFO("seed " << seed);
    simulation s(3 * seed + 1 + seed % 2);  // two Ps or three
    guarded g{s};
    auto hold = [&] { s.one_in(2) ? g.hold() : g.hold_and_park(); };
    auto change_procs = [&] {
      if (s.one_in(20)) weft::set_procs(2 + static_cast<unsigned>(s.up_to(2)));
    };
    const bool plain_thread_comes = s.one_in(4), few_threads = s.one_in(4);
    bool over = false;
    auto main = [&] {
      weft::wait_group w;
      chan<int> ping, pong;
      w.go([&, ping, pong] {
        for (int k = 0; k < 40; ++k) {
          ping.send(k);
          pong.recv();
          alone += weft::rt::sched.alone_p.load(weft::rt::relaxed) != nullptr;
          hold();
          if (s.one_in(8)) simulation::compute(s.up_to(30 * microsecond));
          change_procs();
        }
      });
      w.go([&, ping, pong] {
        for (int k = 0; k < 40; ++k) {
          ping.recv();
          hold();
          pong.send(k);
          if (s.one_in(4)) weft::yield();
        }
      });
      for (std::uint64_t i = s.up_to(4); i > 0; --i) {
        w.go([&] {
          const bool tied = s.one_in(4), calls = s.one_in(2);
          if (tied) weft::lock_os_thread();
          for (int k = 0; k < 10; ++k) {
            if (calls) {
              weft::blocking([&] { simulation::compute(s.up_to(100 * microsecond)); });
            } else {
              sleep_for(s.up_to(60 * microsecond));
            }
            hold();
            change_procs();
          }
          if (tied) weft::unlock_os_thread();
        });
      }
      w.go([&] {
        for (int k = 0; k < 12; ++k) {
          weft::io::wait_readable(fd[0]);
          char byte;
          interleaving::check(::read(fd[0], &byte, 1) == 1, "not readable");
          hold();
        }
      });
      w.wait();
      over = true;
    };
    s.add_weft(main, few_threads ? 1 : weft::options().max_threads);
    s.add([&] {
      for (int k = 0; k < 12; ++k) {
        simulation::compute(s.up_to(40 * microsecond));
        interleaving::check(::write(fd[1], "x", 1) == 1, "not writable");
        if (plain_thread_comes && !over) g.hold();
      }
    });
    REQUIRE(s.run() == "");
  }
  ::close(fd[0]);
  ::close(fd[1]);
  REQUIRE(alone > 1000);
}

// The poller, and timers in the heaps of other Ps.
TEST_CASE("simulation: somebody sleeps for the next timer") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    REQUIRE(simulate(seed, [](simulation& s) {
              weft::wait_group w;
              std::atomic<int> fired{0};
              auto t = weft::after_func(std::chrono::hours(1), [&] { ++fired; });
              for (int i = 0; i < 3; ++i) {
                w.go([&] {
                  for (int k = 0; k < 4; ++k) {
                    sleep_for(s.up_to(500 * microsecond));
                    switch (s.random().below(4)) {
                      case 0: t.reset(std::chrono::nanoseconds(s.up_to(500 * microsecond))); break;
                      case 1: t.stop(); break;
                      default: break;
                    }
                  }
                });
              }
              w.wait();
              t.stop_and_wait();
            }) == "");
  }
}

TEST_CASE("simulation: plain threads change timers while somebody goes to sleep for them") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    std::optional<weft::func_timer> t;
    bool over = false;
    int changing = 2;  // threads that change the timer, which they may do only while run() has not returned
    s.add_weft([&] {
      std::atomic<int> fired{0};
      t.emplace(weft::after_func(std::chrono::hours(1), [&] { ++fired; }));
      for (int k = 0; k < 10; ++k) sleep_for(s.up_to(50 * microsecond));
      over = true;
      while (changing != 0) sleep_for(10 * microsecond);
      t->stop_and_wait();
    });
    for (int i = 0; i < 2; ++i) {
      s.add([&] {
        while (!over) {
          simulation::compute(s.up_to(20 * microsecond));
          if (over || !t) continue;
          s.one_in(4) ? static_cast<void>(t->stop())
                      : static_cast<void>(t->reset(std::chrono::nanoseconds(s.up_to(50 * microsecond))));
        }
        --changing;
      });
    }
    REQUIRE(s.run() == "");
  }
}

// Bursts (sched/burst.cpp): in some of them a goroutine computes, blocks or loses its P. Meanwhile a plain thread makes
// another goroutine ready, and wakes sysmon for nothing, so that sysmon often looks around while a promise is made.
TEST_CASE("simulation: who promises to do it all does, or sysmon sees to it") {
  auto many_bursts_were_short = [] {
    using namespace weft::rt;
    sched.short_bursts.store(sched.short_bursts_before.load(relaxed), relaxed);
  };
  int promised = 0;
  for (std::uint64_t seed = 0; seed < seeds(2000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    chan<int> in(1);
    bool over = false;
    s.add_weft([&] {
      weft::wait_group w;
      for (int i = 0; i < 3; ++i) {
        w.go([&] {
          for (int k = 0; k < 12; ++k) {
            // Until a multiple of 50 µs, so that several often wake up at once.
            sleep_for((1 + s.up_to(2)) * 50 * microsecond - interleaving::now() % (50 * microsecond));
            promised += weft::rt::sched.promiser.load(weft::rt::relaxed) != nullptr;
            many_bursts_were_short();
            if (!s.one_in(4)) continue;
            switch (s.random().below(4)) {
              case 0: simulation::compute(s.up_to(300 * microsecond)); break;
              case 1: weft::blocking([&] { simulation::compute(s.up_to(300 * microsecond)); }); break;
              case 2: simulation::compute(s.up_to(30 * millisecond)); break;
              default: weft::yield();
            }
          }
        });
      }
      w.go([&] {
        while (in.recv()) {}
      });
      w.wait();
      over = true;
    });
    s.add([&] {
      for (int k = 0; !over; ++k) {
        simulation::compute(s.up_to(60 * microsecond));
        weft::rt::sched.sysmon_pause.wakeup();
        if (k < 10) in.send_for(k, std::chrono::microseconds(20));
        if (k == 10) in.close();
      }
    });
    REQUIRE(s.run() == "");
  }
  REQUIRE(promised > 1000);
}

// "revoke", the Ps of system calls, and how sysmon comes to take them.
TEST_CASE("simulation: a P is taken from goroutines that compute or block") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    REQUIRE(simulate(seed, [](simulation& s) {
              weft::wait_group w;
              for (int i = 0; i < 3; ++i) {
                w.go([&] {
                  for (int k = 0; k < 3; ++k) {
                    switch (s.random().below(4)) {
                      case 0: simulation::compute(s.up_to(30 * millisecond)); break;
                      case 1: weft::blocking([&] { simulation::compute(s.up_to(30 * millisecond)); }); break;
                      case 2: sleep_for(s.up_to(2 * millisecond)); break;
                      default: weft::yield();
                    }
                    has_its_p();
                  }
                });
              }
              w.wait();
            }) == "");
  }
}

// startm in vain: work for which no thread can be had must be found by the Ms that exist.
TEST_CASE("simulation: as few threads as there may be, and nobody sleeps beside goroutines that are ready") {
  for (std::uint64_t seed = 0; seed < seeds(4000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    chan<int> in(2);
    s.add_weft(
        [&] {
          weft::wait_group w;
          chan<int> c(1);
          for (int i = 0; i < 4; ++i) {
            w.go([&, c, i] {
              for (int k = 0; k < 3; ++k) {
                switch (s.random().below(5)) {
                  case 0: simulation::compute(s.up_to(100 * microsecond)); break;
                  case 1: weft::blocking([&] { simulation::compute(s.up_to(100 * microsecond)); }); break;
                  case 2: sleep_for(s.up_to(100 * microsecond)); break;
                  case 3: weft::yield(); break;
                  default: in.recv(); break;
                }
                i % 2 ? c.send(k) : static_cast<void>(c.recv());
                has_its_p();
              }
            });
          }
          w.wait();
        },
        1 + s.random().below(3));
    s.add([&] {
      for (int k = 0; k < 12; ++k) {
        simulation::compute(s.up_to(50 * microsecond));
        in.send_for(k, std::chrono::microseconds(20));
      }
      in.close();
    });
    REQUIRE(s.run() == "");
  }
}

TEST_CASE("simulation: a plain thread makes one ready as the only thread goes to the poller") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    chan<int> in;
    s.add_weft(
        [&] {
          auto later = weft::after_func(std::chrono::hours(1), [] {});
          for (int k = 0; k < 10; ++k) in.recv();
          later.stop_and_wait();
        },
        1);
    s.add([&] {
      for (int k = 0; k < 10; ++k) {
        if (s.one_in(2)) simulation::compute(s.up_to(10 * microsecond));
        in.send(k);
      }
    });
    REQUIRE(s.run() == "");
  }
}

TEST_CASE("simulation: those that make a call after the other let others have their turn") {
  for (std::uint64_t seed = 0; seed < seeds(30); ++seed) {
    INFO("seed " << seed);
    REQUIRE(simulate(seed, [](simulation& s) {
              bool over = false;
              weft::wait_group w;
              for (unsigned i = 0; i < s.procs(); ++i) {
                w.go([&] {
                  while (!over) weft::blocking([&] { simulation::compute(s.up_to(10 * microsecond)); });
                });
              }
              for (int k = 0; k < 4; ++k) {
                nanos before = interleaving::now();
                weft::yield();
                interleaving::check(interleaving::now() - before < 50 * millisecond, "others keep the Ps");
              }
              over = true;
              w.wait();
            }) == "");
  }
}

// Once one goroutine has used up its time slice, a goroutine that is woken comes first. Otherwise eight go before it.
TEST_CASE("simulation: a sleeper need not wait for a time slice of each that computes") {
  for (std::uint64_t seed = 0; seed < seeds(30); ++seed) {
    INFO("seed " << seed);
    REQUIRE(simulate(seed, [](simulation& s) {
              bool over = false;
              weft::wait_group w;
              for (unsigned i = 0; i < 12 * s.procs(); ++i) {
                w.go([&] {
                  chan<int> own(1);
                  while (!over) {
                    simulation::compute(s.up_to(2 * microsecond));
                    own.send(1);
                    own.recv();
                  }
                });
              }
              const nanos late = late_after_sleeps(20, 2 * millisecond);
              interleaving::check(late < 20 * 2500 * microsecond, "it waits for the others");
              over = true;
              w.wait();
            }) == "");
  }
}

// Takes Ps as sysmon does (retake), but all the time.
void take_ps(simulation& s, const bool& over) {
  namespace rt = weft::rt;
  while (!over) {
    simulation::compute(s.up_to(5 * microsecond));
    if (over || !rt::sched.running.load(rt::relaxed)) continue;
    rt::P* p = rt::sched.all_ps[s.random().below(rt::sched.procs.load(rt::relaxed))].load(rt::relaxed);
    bool taken = false;
    if (p->status.load(rt::acquire) == rt::p_status::syscall) {
      taken = rt::retake_syscall(p);
    } else {
      rt::lock_guard hold(rt::sched.mutex);
      taken = !rt::sched.shutting_down.load(rt::relaxed) && rt::detach_running(p);
    }
    if (taken) rt::handoffp(p);
  }
}

TEST_CASE("simulation: a P is taken at any moment") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    bool over = false;
    s.add_weft([&] {
      weft::wait_group w;
      chan<int> c(1);
      for (int i = 0; i < 2; ++i) {
        w.go([&, c, i] {
          for (int k = 0; k < 5; ++k) {
            if (s.one_in(3)) simulation::compute(s.up_to(20 * microsecond));
            if (s.one_in(3)) weft::blocking([&] { simulation::compute(s.up_to(20 * microsecond)); });
            if (s.one_in(3)) sleep_for(s.up_to(50 * microsecond));
            i % 2 ? c.send(k) : static_cast<void>(c.recv());
            has_its_p();
          }
        });
      }
      w.wait();
      over = true;
    });
    s.add([&] { take_ps(s, over); });
    REQUIRE(s.run() == "");
  }
}

TEST_CASE("simulation: the number of Ps changes") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    REQUIRE(simulate(seed, [](simulation& s) {
              weft::wait_group w;
              chan<int> c;
              for (int i = 0; i < 4; ++i) {
                w.go([&, c, i] {
                  for (int k = 0; k < 3; ++k) {
                    switch (s.random().below(5)) {
                      case 0: simulation::compute(s.up_to(3 * millisecond)); break;
                      case 1: weft::blocking([&] { simulation::compute(s.up_to(millisecond)); }); break;
                      case 2: sleep_for(s.up_to(millisecond)); break;
                      case 3: weft::set_procs(1 + s.random().below(4)); break;
                      default: weft::yield();
                    }
                    i % 2 ? c.send(k) : static_cast<void>(c.recv());
                    has_its_p();
                  }
                });
              }
              w.wait();
            }) == "");
  }
}

// As sysmon does, which has little patience with goroutines in no_preemption. Checks that the second stop has reached
// all, although the first one was given up a moment before.
void stop_twice(simulation& s) {
  namespace rt = weft::rt;
  if (!rt::sched.running.load(rt::relaxed) || !rt::sched.world.try_acquire_lock()) return;
  for (int i = 0; i < 2; ++i) {
    (void)rt::stop_the_world(rt::nanotime() + s.up_to(20 * microsecond));  // started again either way
    {
      rt::lock_guard hold(rt::sched.mutex);
      const bool ends = rt::sched.shutting_down.load(rt::relaxed) || !rt::sched.world_stopping.load(rt::relaxed);
      for (rt::M* m : rt::sched.all_ms) {
        if (ends || !m->p.load(rt::relaxed)) continue;
        interleaving::check(m->requests.load(rt::relaxed) & rt::request::stop, "an M does not know of the stop");
      }
    }
    rt::start_the_world();
  }
  rt::sched.world.release_lock();
}

TEST_CASE("simulation: a stop that comes right after one that was given up") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    bool over = false;
    s.add_weft([&] {
      weft::wait_group w;
      for (int i = 0; i < 2; ++i) {
        w.go([&] {
          chan<int> own(1);
          for (int k = 0; k < 5; ++k) {
            weft::no_preemption keep;
            for (int n = 0; n < 10; ++n) {
              own.send(n);
              own.recv();
              if (s.one_in(4)) simulation::compute(s.up_to(10 * microsecond));
            }
          }
        });
      }
      w.wait();
      over = true;
    });
    s.add([&] {
      while (!over) {
        simulation::compute(s.up_to(5 * microsecond));
        stop_twice(s);
      }
    });
    REQUIRE(s.run() == "");
  }
}

TEST_CASE("simulation: goroutines that are tied to their threads") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    REQUIRE(simulate(seed, [](simulation& s) {
              weft::wait_group w;
              chan<int> c;
              for (int i = 0; i < 4; ++i) {
                w.go([&, c, i] {
                  std::optional<weft::pin> pinned;
                  bool locked = s.one_in(3);
                  if (locked) weft::lock_os_thread();
                  if (s.one_in(3)) pinned.emplace();
                  for (int k = 0; k < 3; ++k) {
                    if (s.one_in(3)) sleep_for(s.up_to(millisecond));
                    if (s.one_in(3)) weft::yield();
                    i % 2 ? c.send(k) : static_cast<void>(c.recv());
                    has_its_p();
                  }
                  pinned.reset();
                  if (locked && s.one_in(2)) weft::unlock_os_thread();
                });
              }
              w.wait();
            }) == "");
  }
}

// One ties itself again and again, and sleeps meanwhile.
TEST_CASE("simulation: who waits to be tied to its thread has its turn, where as many are tied as there may be") {
  for (std::uint64_t seed = 0; seed < seeds(100); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    const auto most = static_cast<unsigned>(1 + s.random().below(3));
    s.add_weft(
        [&] {
          weft::wait_group w;
          bool over = false;
          for (unsigned i = 0; i < most; ++i) {
            w.go([&] {
              while (!over) {
                weft::lock_os_thread();
                sleep_for(100 * microsecond);
                weft::unlock_os_thread();
              }
            });
          }
          for (int k = 0; k < 5; ++k) {
            sleep_for(millisecond);
            const nanos begin = interleaving::now();
            weft::lock_os_thread();
            interleaving::check(interleaving::now() - begin < 5 * millisecond, "others are tied before it");
            weft::unlock_os_thread();
          }
          over = true;
          w.wait();
        },
        most);
    REQUIRE(s.run() == "");
  }
}

// Each time its thread is busy when it gets ready.
TEST_CASE("simulation: a pinned goroutine does not queue anew behind those that compute") {
  for (std::uint64_t seed = 0; seed < seeds(20); ++seed) {
    INFO("seed " << seed);
    REQUIRE(simulate(seed, [](simulation& s) {
              weft::wait_group w;
              bool over = false;
              for (unsigned i = 0; i < 12 * s.procs(); ++i) {
                w.go([&] {
                  while (!over) {
                    simulation::compute(5 * millisecond);
                    weft::yield();
                  }
                });
              }
              w.go([&] {
                while (!over) weft::sleep(std::chrono::milliseconds(1));
              });
              w.go([&] {
                weft::pin here;
                const nanos late = late_after_sleeps(40, millisecond);
                over = true;
                interleaving::check(late < 40 * 14 * millisecond, "it waits for the others");
              });
              w.wait();
            }) == "");
  }
}

// Their Ms sleep in the poller, or idle, and other Ms take them from the queues.
TEST_CASE("simulation: pinned goroutines get ready") {
  for (std::uint64_t seed = 0; seed < seeds(4000); ++seed) {
    INFO("seed " << seed);
    REQUIRE(simulate(seed, [](simulation& s) {
              weft::wait_group w;
              chan<int> c;
              for (int i = 0; i < 2; ++i) {
                w.go([&, c] {
                  weft::pin here;
                  for (int k = 0; k < 4; ++k) {
                    c.recv();
                    if (s.one_in(2)) weft::yield();
                  }
                });
              }
              w.go([&, c] {
                for (int k = 0; k < 8; ++k) {
                  sleep_for(s.up_to(50 * microsecond));
                  c.send(k);
                  if (s.one_in(2)) simulation::compute(s.up_to(50 * microsecond));
                }
              });
              w.wait();
            }) == "");
  }
}

// Several at once, so that an M without a P makes goroutines ready.
TEST_CASE("simulation: descriptors get ready") {
  constexpr int several = 3;
  int fds[several][2];
  for (auto& fd : fds) REQUIRE(::pipe2(fd, O_NONBLOCK) == 0);
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    s.add_weft([&] {
      weft::wait_group w;
      for (auto& fd : fds) {
        w.go([&] {
          for (int k = 0; k < 3; ++k) {
            weft::io::wait_readable(fd[0]);
            char byte;
            interleaving::check(::read(fd[0], &byte, 1) == 1, "not readable");
            if (s.one_in(3)) sleep_for(s.up_to(100 * microsecond));
            if (s.one_in(3)) simulation::compute(s.up_to(100 * microsecond));
          }
        });
      }
      w.wait();
    });
    s.add([&] {
      for (int k = 0; k < 3; ++k) {
        simulation::compute(s.up_to(200 * microsecond));
        for (auto& fd : fds) interleaving::check(::write(fd[1], "x", 1) == 1, "not writable");
      }
    });
    REQUIRE(s.run() == "");
  }
  for (auto& fd : fds) {
    ::close(fd[0]);
    ::close(fd[1]);
  }
}

// Ms that are in user code when the grace is over are left behind. The others stop, wherever they are.
TEST_CASE("simulation: run() ends while others run, sleep and start goroutines") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    bool over = false;
    s.add([&] {
      for (int runs = 0; runs < 2; ++runs) {
        chan<int> c;
        bool is_over = false;  // of this run(); what is left behind may read it
        weft::run(
            [&] {
              for (int i = 0; i < 3; ++i) {
                weft::go([&s, c] {
                  for (int k = 0; k < 5; ++k) {
                    std::optional<weft::no_preemption> goes_on;
                    if (s.one_in(3)) goes_on.emplace();
                    if (s.one_in(3)) simulation::compute(s.up_to(millisecond));
                    if (s.one_in(3)) weft::blocking([&] { simulation::compute(s.up_to(millisecond)); });
                    if (s.one_in(3)) sleep_for(s.up_to(millisecond));
                    if (s.one_in(3)) weft::go([] {});
                    if (s.one_in(3)) c.send(k);
                  }
                });
              }
              if (s.one_in(2)) sleep_for(s.up_to(millisecond));
              auto patience = std::chrono::nanoseconds(s.up_to(millisecond));
              if (s.one_in(2)) weft::select(weft::on_recv(c), weft::on_recv(weft::after(patience)));
              is_over = true;
            },
            {.procs = s.procs(), .shutdown_grace = std::chrono::microseconds(200)});
        interleaving::check(is_over, "main has not ended");
      }
      over = true;
    });
    s.add([&] {
      while (!over) {
        simulation::compute(s.up_to(100 * microsecond));
        try {
          weft::go([&s] {
            if (s.one_in(2)) weft::yield();
          });
        } catch (const std::logic_error&) {}
      }
    });
    REQUIRE(s.run() == "");
  }
}

// Calls weft::run(main) six times. Beside it, two threads call `step` over and over. One of the threads stands still
// for long somewhere in it, and goes on in another run() than the one for which it came.
template <class Main, class Step>
std::string run_again_and_again(simulation& s, unsigned procs, Main main, Step step) {
  s.stall_one_thread();
  bool over = false;
  const unsigned max_threads = s.one_in(2) ? 1 : weft::options().max_threads;
  s.add([&, max_threads] {
    for (int runs = 0; runs < 6; ++runs) weft::run(main, {.procs = procs, .max_threads = max_threads});
    over = true;
  });
  for (int i = 0; i < 2; ++i) {
    s.add([&] {
      while (!over) {
        if (s.one_in(4)) simulation::compute(s.up_to(10 * microsecond));
        step();
      }
    });
  }
  return s.run();
}

auto sleeps_or_not(simulation& s) {
  return [&s] {
    if (s.one_in(2)) sleep_for(s.up_to(20 * microsecond));
    has_its_p();
  };
}

TEST_CASE("simulation: run() ends and begins again beside threads that start goroutines") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    REQUIRE(run_again_and_again(s, s.procs(), sleeps_or_not(s), [] {
              weft::rt::interleave_point();
              auto joined = std::make_shared<bool>(false);
              try {
                weft::spawn([=] {
                  has_its_p();
                  interleaving::check(!*joined, "it runs on after its join()");
                }).join();
              } catch (const std::logic_error&) {
              } catch (const weft::goroutine_exited&) {}
              *joined = true;
            }) == "");
  }
}

// What a goroutine is woken for is not there any more.
TEST_CASE("simulation: run() ends and begins again beside threads that wake others up") {
  for (std::uint64_t seed = 0; seed < seeds(4000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    auto main = [&] {
      chan<int> c;
      weft::go([&, c] { c.send(1); });
      if (s.one_in(2)) simulation::compute(s.up_to(20 * microsecond));
      c.recv();
      has_its_p();
    };
    REQUIRE(run_again_and_again(s, 2 + s.procs() % 2, main, [] { weft::rt::wakep(); }) == "");
  }
}

// The timers of a run() end with it, also those that are being set just then.
TEST_CASE("simulation: run() ends and begins again beside threads that set timers") {
  struct setting {
    std::uint64_t made_in = 0;    // not 0: the timer was set in this run(), or between it and the next
    std::uint64_t called_in = 0;  // not 0: the run() in which f was called
    void look() const {
      interleaving::check(made_in == 0 || called_in == 0 || made_in == called_in, "called in another run()");
    }
  };
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    auto step = [&] {
      auto made = std::make_shared<setting>();
      auto f = [=] {
        made->called_in = present_run();
        made->look();
      };
      std::optional<weft::func_timer> t;
      auto set = [&](auto change) {
        const std::uint64_t run = present_run();
        change(std::chrono::nanoseconds(s.up_to(5 * microsecond)));
        if (run != present_run()) return;
        made->made_in = run;
        made->look();
      };
      try {
        if (s.one_in(3)) {
          auto later = weft::after_func(std::chrono::hours(1), [] {});
          return interleaving::check(later.stop(), "not pending, though its function was not started");
        }
        set([&](std::chrono::nanoseconds d) { t.emplace(weft::after_func(d, f)); });
        if (!t->stop_and_wait()) return;  // f is called, or its run() is over
        *made = {};
        set([&](std::chrono::nanoseconds d) { t->reset(d); });
      } catch (const std::logic_error&) {}
    };
    REQUIRE(run_again_and_again(s, s.procs(), sleeps_or_not(s), step) == "");
  }
}

// One that came and went while a thread started a goroutine for it in a group has left nothing in the group.
TEST_CASE("simulation: run() begins and ends at once beside threads that start groups") {
  for (std::uint64_t seed = 0; seed < seeds(2000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    auto step = [&] {
      weft::task_group g;
      try {
        g.go([] {});
      } catch (const std::logic_error&) {}
    };
    REQUIRE(run_again_and_again(
                s, 1, [] {}, step) == "");
  }
}

// A thread may wait for a place in its group across the end of a run().
TEST_CASE("simulation: run() ends and begins again beside threads that start groups") {
  for (std::uint64_t seed = 0; seed < seeds(1000); ++seed) {
    INFO("seed " << seed);
    simulation s(seed);
    auto step = [&] {
      weft::task_group g;
      g.set_limit(2);
      try {
        const std::uint64_t run = present_run();
        g.go([] { weft::sleep(std::chrono::hours(1)); });
        if (run != present_run()) return;
        auto look = [=] { interleaving::check(run == present_run(), "started beside one that was left behind"); };
        for (int i = 0; i < 3; ++i) {
          g.go([&, look] {
            look();
            if (s.one_in(2)) weft::yield();
          });
        }
      } catch (const std::logic_error&) {}
    };
    REQUIRE(run_again_and_again(s, s.procs(), sleeps_or_not(s), step) == "");
  }
}
