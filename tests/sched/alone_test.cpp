// A P that is alone (sched/alone.cpp), and ends to be. What may go wrong between two threads is in simulation_test.cpp.
//
// Kills these mutants (tests/mutants): alone-in-users-code.

#include "sched/enter.hpp"
#include "tests/sched/helpers.hpp"
#include "tests/support/catch.hpp"

#include <mutex>

using namespace weft::test;

namespace {

// Talks to another goroutine until this P is alone.
bool talk_until_alone() {
  weft::chan<int> ping, pong;
  auto other = weft::spawn([=] {
    while (ping.recv()) pong.send(1);
  });
  const auto give_up = clock::now() + late;
  auto is_alone = [] { return rt::sched.alone_p.load(rt::relaxed) == rt::p_of(rt::this_m()); };
  while (!is_alone() && clock::now() < give_up) {
    ping.send(1);
    pong.recv();
  }
  ping.close();
  other.join();
  return is_alone();
}

bool in_the_runtime() { return rt::this_m() && rt::this_m()->depth.load(rt::relaxed) != 0; }

// Its move waits for a mutex, where a channel makes it.
struct waits_for {
  std::timed_mutex* mutex;
  std::atomic<bool>*waits, *got;

  waits_for(std::timed_mutex* m, std::atomic<bool>* w, std::atomic<bool>* g) : mutex(m), waits(w), got(g) {}
  waits_for(waits_for&& from) noexcept : mutex(from.mutex), waits(from.waits), got(from.got) {
    if (!in_the_runtime()) return;
    *waits = true;
    if (mutex->try_lock_for(late)) {
      *got = true;
      mutex->unlock();
    }
  }
};

}  // namespace

TEST_CASE("alone: two that talk are, while the other P idles, and no more when others come") {
  if (rt::barriers_are_symmetric) return;
  weft::run(
      [] {
        for (int i = 0; i < 10; ++i) {
          REQUIRE(talk_until_alone());
          std::atomic<bool> ran{false};
          weft::go([&] { ran = true; });
          weft::no_preemption stays;
          CHECK(stay_until(ran));
          CHECK(rt::sched.alone_p.load(rt::relaxed) == nullptr);
        }
      },
      {.procs = 2});
}

// Who comes back from a call takes the other P, and must not wait for who waits for him.
TEST_CASE("alone: a value's move may wait for what somebody holds who is in a call") {
  weft::run(
      [] {
        std::timed_mutex mutex;
        std::atomic<bool> calls{false}, waits{false}, got{false};
        auto holder = weft::spawn([&] {
          mutex.lock();
          weft::blocking([&] {
            calls = true;
            stay_until(waits);
            std::this_thread::sleep_for(a_moment);
          });
          mutex.unlock();
        });
        while (!calls) weft::yield();
        talk_until_alone();
        weft::chan<waits_for> c(1);
        c.send(waits_for(&mutex, &waits, &got));
        CHECK(got);
        holder.join();
      },
      {.procs = 2});
}
