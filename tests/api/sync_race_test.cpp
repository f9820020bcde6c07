// <weft/sync.hpp> under ThreadSanitizer, with real threads: what was written before one call can be read after another.
// Most calls do not overlap, so they take their fast paths. What tells a thread that it is its turn orders nothing.
// Kills the mutants mutex-*-relaxed, rwmutex-*-relaxed, semaphore-*-relaxed, event-*-relaxed, once-*-relaxed,
// countdown-*-relaxed, barrier-*-relaxed, task-*-relaxed.

#include "tests/support/catch.hpp"
#include "tests/support/hand_over.hpp"

#include <weft/runtime.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

using weft::test::hand_over;
using weft::test::must;
using weft::test::several;
using weft::test::times;
using weft::test::wait_for;

TEST_CASE("mutex: who locks it sees what was done before it was unlocked") {
  weft::mutex m;
  auto lock_and_unlock = [&](int) {
    m.lock();
    m.unlock();
  };
  hand_over(lock_and_unlock, lock_and_unlock);
}

TEST_CASE("shared_mutex: writers and readers see what the others did before") {
  weft::shared_mutex m;
  auto write = [&](int) {
    m.lock();
    m.unlock();
  };
  auto read = [&](int) {
    m.lock_shared();
    m.unlock_shared();
  };
  hand_over(write, write);
  hand_over(write, read);
  hand_over(read, write);
}

TEST_CASE("shared_mutex: a writer that waits sees what each reader did") {
  for (int i = 0; i < 100; ++i) {
    weft::shared_mutex m;
    std::atomic<int> inside{0}, comes{0}, gone{0};  // relaxed: they order nothing
    int first = 0, last = 0;
    std::thread leaves_first([&] {
      m.lock_shared();
      inside.fetch_add(1, std::memory_order_relaxed);
      wait_for(comes, 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the writer waits
      first = 1;
      m.unlock_shared();
      gone.store(1, std::memory_order_relaxed);
    });
    std::thread leaves_last([&] {
      m.lock_shared();
      inside.fetch_add(1, std::memory_order_relaxed);
      wait_for(gone, 1);
      last = 1;
      m.unlock_shared();
    });
    std::thread writer([&] {
      wait_for(inside, 2);
      comes.store(1, std::memory_order_relaxed);
      m.lock();
      must(first == 1 && last == 1);
      m.unlock();
    });
    for (std::thread* t : {&leaves_first, &leaves_last, &writer}) t->join();
  }
}

TEST_CASE("shared_mutex: a visit that becomes a share sees what the writer did that was in its way") {
  weft::shared_mutex m;
  int value = 0;
  std::thread writer([&] {
    for (int i = 0; i < 100 * times; ++i) {
      m.lock();
      ++value;
      m.unlock();
    }
  });
  int seen = 0;
  while (seen != 100 * times) {
    m.lock_shared();
    must(value >= seen);
    seen = value;
    m.unlock_shared();
  }
  writer.join();
}

TEST_CASE("semaphore: who gets a permit sees what was done before it was given back") {
  weft::semaphore s(1);
  auto acquire_and_release = [&](int) {
    s.acquire();
    s.release();
  };
  hand_over(acquire_and_release, acquire_and_release);
}

TEST_CASE("event: who waits sees what was done before it was set") {
  several<weft::event> e;
  hand_over([&](int i) { e[i].set(); }, [&](int i) { e[i].wait(); });
}

TEST_CASE("call_once: who comes second sees what the call did") {
  several<weft::once_flag> flag;
  several<int> made(0);
  hand_over([&](int i) { weft::call_once(flag[i], [&] { made[i] = 1; }); },
            [&](int i) {
              weft::call_once(flag[i], [] {});
              must(made[i] == 1);
            });
}

TEST_CASE("wait_group: who waits sees what was done before it was done") {
  several<weft::wait_group> w;
  for (int i = 0; i <= times; ++i) w[i].add(1);
  hand_over([&](int i) { w[i].done(); }, [&](int i) { w[i].wait(); });
}

TEST_CASE("barrier: who waits sees what was done before the last one arrived") {
  several<weft::barrier<>> b(2);
  std::vector<weft::barrier<>::arrival_token> first;
  for (int i = 0; i <= times; ++i) first.push_back(b[i].arrive());
  hand_over([&](int i) { static_cast<void>(b[i].arrive()); },
            [&](int i) { b[i].wait(std::move(first[static_cast<std::size_t>(i)])); });
}

TEST_CASE("task: who sees that it is done sees what it did, and frees it") {
  weft::run(
      [] {
        for (int i = 0; i < 2000; ++i) {
          weft::task<int> t = weft::spawn([i] { return i; });
          // Yields rarely: what the scheduler does would order the accesses, too.
          for (int n = 1; !t.done(); ++n) {
            if (n % 100'000 == 0) weft::yield();
          }
          must(t.join() == i);
        }
      },
      {.procs = 2});
}

// At times the task ends while the wait for it begins.
TEST_CASE("task: who waits sees what it did") {
  weft::run(
      [] {
        for (int i = 0; i < 20'000; ++i) {
          int done = -1;
          weft::task<void> t = weft::spawn([&done, i] { done = i; });
          if (i % 2 == 0) {
            t.wait();
          } else {
            must(t.wait_for(std::chrono::hours(1)));
          }
          must(done == i);
        }
      },
      {.procs = 2});
}
