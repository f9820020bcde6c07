// append-check-wake (proc.cpp) on the running scheduler: work that is made ready finds an M, although the goroutine
// that made it ready computes on, and nobody may take its P. Where two threads have to meet at one place, the test
// holds the lock for which one of them has to wait there.

#include "sched/proc.hpp"
#include "tests/sched/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace weft::test;
using weft::chan;

namespace {

// A goroutine that computes on a thread of its own until it is told to stop; then it does one more thing, and gives up
// its P.
struct locked_neighbour {
  std::atomic<bool> computes{false}, over{false};
  std::function<void()> at_last = [] {};  // may be set until `over` is
  chan<void> end;
  weft::task<void> goroutine = weft::spawn([this] {
    weft::lock_os_thread();
    {
      weft::no_preemption alone;
      computes = true;
      stay_until(over);
      at_last();
    }
    end.recv();
  });

  ~locked_neighbour() {
    over = true;
    end.close();
  }
};

}  // namespace

// A2. The goroutine that makes another one ready keeps its P, so another M must be woken.
TEST_CASE("wake: whoever makes a goroutine ready wakes somebody for it") {
  weft::run(
      [] {
        for (int i = 0; i < 3; ++i) {
          sleeper one;
          weft::sleep(a_moment);
          weft::no_preemption alone;
          if (one.wake()) CHECK(one.runs());
        }
      },
      {.procs = 2});
}

// ready_all wakes one M for all goroutines, and each M that finds one wakes the next M (resetspinning).
TEST_CASE("wake: Ms wake each other as long as there is more to do") {
  weft::run(
      [] {
        for (int i = 0; i < 3; ++i) {
          weft::event start;
          std::atomic<int> running{0};
          std::atomic<bool> all{false};
          weft::wait_group w;
          for (int g = 0; g < 3; ++g) {
            w.go([&] {
              start.wait();
              weft::no_preemption alone;
              if (++running == 3) all = true;
              stay_until(all);
            });
          }
          weft::sleep(a_moment);
          {
            weft::no_preemption alone;
            start.set();
            stay_until(all);
            CHECK(all);
          }
          w.wait();
        }
      },
      {.procs = 4});
}

// S3. The other M has looked everywhere; no P idles yet when the goroutine is made ready.
TEST_CASE("wake: an M that has given up its P sees what was made ready before") {
  weft::run(
      [] {
        three_times([&] {
          sleeper one;
          neighbour other;
          weft::no_preemption alone;
          held_scheduler held;
          other.over = true;
          std::this_thread::sleep_for(a_moment);
          rt::sched.help_wanted.store(false, rt::relaxed);  // otherwise it would doze, and look once more after that
          bool woken = one.wake();
          held.release();
          if (woken) CHECK(one.runs());
          return woken;
        });
      },
      {.procs = 2});
}

// wakep takes back that an M spins, if there is no P for it to spin with.
TEST_CASE("wake: who finds no P to wake somebody with does not keep others from it") {
  weft::run(
      [] {
        three_times([&] {
          sleeper one, another;
          weft::sleep(a_moment);
          weft::no_preemption alone;
          // The only idle P is gone between the look at idle_ps and the lock.
          std::atomic<bool> holds{false}, goes_on{false};
          rt::P* p = nullptr;
          std::thread thief([&] {
            {
              rt::lock_guard hold(rt::sched.mutex);
              holds = true;
              std::this_thread::sleep_for(a_moment);
              p = rt::idle_p_get();
            }
            stay_until(goes_on);
            if (!p) return;
            rt::lock_guard hold(rt::sched.mutex);
            rt::idle_p_put(p);
          });
          stay_until(holds);
          one.wake();
          goes_on = true;
          thief.join();
          bool woken = another.wake();
          if (woken) CHECK(another.runs());
          return woken;
        });
      },
      {.procs = 2});
}

TEST_CASE("handoff: a P that is given up with goroutines on it goes to somebody") {
  weft::run(
      [] {
        for (int i = 0; i < 3; ++i) {
          std::atomic<bool> ran{false};
          locked_neighbour other;
          other.at_last = [&] { weft::go([&] { ran = true; }); };
          CHECK(eventually([&] { return other.computes.load(); }));
          weft::no_preemption alone;
          pretended_spinner spinner;
          other.over = true;
          stay_until(ran);
          CHECK(ran);
        }
      },
      {.procs = 2});
}

// S3 of handoffp. No P idles when the goroutine is made ready, and the M that spun has found something else.
TEST_CASE("handoff: who gives up a P sees what was made ready before") {
  weft::run(
      [] {
        three_times([&] {
          sleeper one;
          locked_neighbour other;
          weft::sleep(a_moment);
          stay_until(other.computes);
          weft::no_preemption alone;
          pretended_spinner spinner;
          held_scheduler held;
          other.over = true;
          std::this_thread::sleep_for(a_moment);
          bool woken = one.wake();
          spinner.stop();
          held.release();
          if (woken) CHECK(one.runs());
          return woken;
        });
      },
      {.procs = 2});
}
