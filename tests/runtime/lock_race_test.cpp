// The lock under ThreadSanitizer, with real threads, guards plain data. It is taken at once, while spinning, and after
// a sleep. Kills the mutants lock-release-relaxed, lock-acquire-relaxed, lock-try-relaxed, lock-spin-relaxed,
// lock-sleep-relaxed.

#include "runtime/lock.hpp"
#include "tests/support/catch.hpp"

#include <chrono>
#include <thread>

using namespace weft::rt;

namespace {

// Relaxed throughout, so that it orders nothing.
template <class T>
void wait_for(const atomic<T>& what, T value) {
  for (int n = 1; what.load(relaxed) != value; ++n) {
    if (n % 1000 != 0) {
      cpu_relax();  // mostly: a yield takes longer than the other thread spins for the lock
    } else {
      std::this_thread::yield();
    }
  }
}

// One thread holds the lock until the other one wants it, and for delay(i) longer.
template <class Delay>
void hand_over(int times, Delay delay) {
  lock l(lock_rank::leaf);
  int value = 0, wrong = 0;
  atomic<int> held{0}, wanted{0}, got{0};
  std::thread holder([&] {
    for (int i = 1; i <= times; ++i) {
      {
        lock_guard hold(l);
        held.store(i, relaxed);
        wait_for(wanted, i);
        delay(i);
        value = i;
      }
      wait_for(got, i);
    }
  });
  for (int i = 1; i <= times; ++i) {
    wait_for(held, i);
    wanted.store(i, relaxed);
    {
      lock_guard hold(l);
      wrong += value != i;
    }
    got.store(i, relaxed);
  }
  holder.join();
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("lock: who takes it free sees what the last holder wrote") {
  for (bool tries : {false, true}) {
    lock l(lock_rank::leaf);
    int value = 0;
    atomic<bool> released{false};
    std::thread holder([&] {
      l.acquire_lock();
      value = 1;
      l.release_lock();
      released.store(true, relaxed);
    });
    wait_for(released, true);
    if (!tries) l.acquire_lock();
    bool taken = !tries || l.try_acquire_lock();
    CHECK(taken);
    CHECK(value == 1);
    if (taken) l.release_lock();
    holder.join();
  }
}

TEST_CASE("lock: who spins for it sees what the last holder wrote") {
  hand_over(30000, [](int i) {
    for (int n = i % 32; n > 0; --n) cpu_relax();
  });
}

TEST_CASE("lock: who slept for it sees what the last holder wrote") {
  hand_over(20, [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
}
