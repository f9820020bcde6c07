// Two threads hand over a plain variable, ordered by nothing but the calls under test, so that ThreadSanitizer finds a
// missing release or acquire in them. The calls never overlap, so they take their fast paths.
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

// In place of CHECK, which must not be used by several threads at once.
inline void must(bool ok) {
  if (!ok) std::abort();
}

inline void wait_for(const std::atomic<int>& what, int value) {
  while (what.load(std::memory_order_relaxed) != value) std::this_thread::yield();
}

// One thread writes the variable and calls `give`; then the other one calls `take` and reads it. After each time they
// swap their parts. The argument of `give` and `take` is the number of the hand-over, from 1 to `times`.
inline void hand_over(const std::function<void(int)>& give, const std::function<void(int)>& take) {
  int value = 0, wrong = 0;
  std::atomic<int> turn{0};  // relaxed, so that it orders nothing
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

// One T for each hand-over.
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
