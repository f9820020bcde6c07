// <weft/sync.hpp> with real threads for ThreadSanitizer: what was written before one call is read after another. The
// calls come one after the other, so that they take the short way, and what says that it is time for the next orders
// nothing. Kills the mutants mutex-*-relaxed, rwmutex-*-relaxed, semaphore-*-relaxed, event-*-relaxed, once-*-relaxed,
// countdown-*-relaxed, barrier-*-relaxed.

#include "tests/support/catch.hpp"

#include <weft/sync.hpp>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int times = 1000;

void wait_for(const std::atomic<int>& what, int value) {
  while (what.load(std::memory_order_relaxed) != value) std::this_thread::yield();
}

// One thread writes and calls `give`, then this one calls `take` and reads, then the other way round. `i`: how often.
void hand_over(const std::function<void(int)>& give, const std::function<void(int)>& take) {
  int value = 0, wrong = 0;
  std::atomic<int> turn{0};  // relaxed
  auto one_side = [&](bool gives_first) {
    for (int i = 1; i <= times; ++i) {
      if (gives_first == (i % 2 != 0)) {
        wait_for(turn, 2 * i - 2);
        value = i;
        give(i);
        turn.store(2 * i - 1, std::memory_order_relaxed);
      } else {
        wait_for(turn, 2 * i - 1);
        take(i);
        wrong += value != i;
        turn.store(2 * i, std::memory_order_relaxed);
      }
    }
  };
  std::thread other([&] { one_side(true); });
  one_side(false);
  other.join();
  CHECK(wrong == 0);
}

// One for each time.
template <class T>
class several {
 public:
  template <class... Args>
  explicit several(Args... args) {
    for (int i = 0; i <= times; ++i) all_.emplace_back(args...);
  }
  T& operator[](int i) { return all_[static_cast<std::size_t>(i)]; }

 private:
  std::deque<T> all_;
};

}  // namespace

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
              if (made[i] != 1) std::abort();
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
