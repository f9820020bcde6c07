// A P that is alone (sched/alone.cpp), and ceases to be. What may go wrong between two threads is tested in
// simulation_test.cpp.
//
// Kills these mutants (tests/mutants): alone-in-users-code.

#include "sched/enter.hpp"
#include "tests/sched/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace weft::test;

namespace {

// Talks to another goroutine until this P is alone. Returns false if it never is.
bool talk_until_alone() {
  weft::chan<int> ping, pong;
  auto other = weft::spawn([=] {
    while (ping.recv()) pong.send(1);
  });
  const auto give_up = clock::now() + late;
  bool alone = false;
  while (!alone && clock::now() < give_up) {
    ping.send(1);
    pong.recv();
    alone = rt::sched.alone_p.load(rt::relaxed) == rt::p_of(rt::this_m());
  }
  ping.close();
  other.join();
  return alone;
}

bool in_the_runtime() { return rt::this_m() && rt::this_m()->depth.load(rt::relaxed) != 0; }

// A value whose move constructor waits when a channel calls it.
struct waits_for {
  std::atomic<bool>*it, *waits, *got;

  waits_for(std::atomic<bool>* i, std::atomic<bool>* w, std::atomic<bool>* g) : it(i), waits(w), got(g) {}
  waits_for(waits_for&& from) noexcept : it(from.it), waits(from.waits), got(from.got) {
    if (!in_the_runtime()) return;
    *waits = true;
    *got = stay_until(*it);
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

// The goroutine that comes back from its call takes the other P. It must not wait for the goroutine that waits for it.
TEST_CASE("alone: a value's move may wait for a goroutine that is in a call") {
  weft::run(
      [] {
        std::atomic<bool> calls{false}, is_back{false}, waits{false}, got{false};
        auto other = weft::spawn([&] {
          weft::blocking([&] {
            calls = true;
            stay_until(waits);
            std::this_thread::sleep_for(a_moment);
          });
          is_back = true;
        });
        while (!calls) weft::yield();
        talk_until_alone();
        weft::chan<waits_for> c(1);
        c.send(waits_for(&is_back, &waits, &got));
        CHECK(got);
        other.join();
      },
      {.procs = 2});
}
