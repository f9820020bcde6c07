// Two threads that hand a plain variable over, and nothing orders them but the calls that are tested: for
// ThreadSanitizer. The calls come one after the other, so that they take the short way.
#pragma once

#include "tests/support/catch.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <functional>
#include <thread>

namespace weft::test {

inline constexpr int times = 1000;

// In place of CHECK, which is not for several threads.
inline void must(bool ok) {
  if (!ok) std::abort();
}

inline void wait_for(const std::atomic<int>& what, int value) {
  while (what.load(std::memory_order_relaxed) != value) std::this_thread::yield();
}

// One thread writes and calls `give`, then this one calls `take` and reads, then the other way round. `i`: how often.
inline void hand_over(const std::function<void(int)>& give, const std::function<void(int)>& take) {
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

}  // namespace weft::test
