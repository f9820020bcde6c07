// The low-level lock and the note through their interleavings, with a modelled futex: a thread that sleeps runs on only
// when it is woken, so a lost wake-up shows as a deadlock. Kills the mutant lock-wakes-nobody.

#include "runtime/lock.hpp"
#include "runtime/note.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/interleave.hpp"

using namespace weft::rt;
using weft::test::interleaving;
using weft::test::seeds;

TEST_CASE("lock: one holder at a time, and nobody sleeps for ever") {
  for (std::uint64_t seed = 0; seed < seeds(3000); ++seed) {
    interleaving threads(seed);
    if (seed % 2 != 0) threads.keep_stores();
    lock l(lock_rank::leaf);
    int inside = 0, rounds = 0;
    for (int t = 0; t < 3; ++t) {
      threads.add([&] {
        for (int i = 0; i < 3; ++i) {
          if (threads.random().below(4) != 0) {
            l.acquire_lock();
          } else if (!l.try_acquire_lock()) {
            continue;
          }
          interleaving::check(inside++ == 0, "two holders");
          if (threads.random().below(2) == 0) interleave_point();
          --inside;
          ++rounds;
          l.release_lock();
        }
      });
    }
    INFO("seed " << seed);
    REQUIRE(threads.run() == "");
    REQUIRE(rounds > 0);
    REQUIRE(l.try_acquire_lock());
  }
}

TEST_CASE("lock: the last unlock of all wakes who sleeps, also if its store is seen late") {
  for (std::uint64_t seed = 0; seed < seeds(20000); ++seed) {
    interleaving threads(seed);
    threads.keep_stores();
    threads.stall_threads();
    lock l(lock_rank::leaf);
    for (int t = 0; t < 2; ++t) {
      threads.add([&] {
        l.acquire_lock();
        interleave_point();
        l.release_lock();
        // Nothing follows that would show the store.
        for (int i = 0; i < 4; ++i) interleave_point();
      });
    }
    INFO("seed " << seed);
    REQUIRE(threads.run() == "");
  }
}

TEST_CASE("note: a wake-up before, during and after falling asleep") {
  for (std::uint64_t seed = 0; seed < seeds(3000); ++seed) {
    interleaving threads(seed);
    note n, back;
    int value = 0;
    threads.add([&] {
      for (int i = 1; i <= 3; ++i) {
        n.sleep();
        n.clear();
        interleaving::check(value == i, "woken before the value was there");
        back.wakeup();
      }
    });
    threads.add([&] {
      for (int i = 1; i <= 3; ++i) {
        value = i;
        n.wakeup();
        back.sleep();
        back.clear();
      }
    });
    INFO("seed " << seed);
    REQUIRE(threads.run() == "");
  }
}
