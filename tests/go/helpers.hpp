// Small things that the tests of goroutines share.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <weft/weft.hpp>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TESTS_UNDER_TSAN 1
#elif __has_feature(address_sanitizer)
#define TESTS_UNDER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TESTS_UNDER_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define TESTS_UNDER_ASAN 1
#endif

namespace weft::test {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

#if defined(TESTS_UNDER_TSAN)
inline constexpr bool under_tsan = true;
inline constexpr int slowdown = 10;
#elif defined(TESTS_UNDER_ASAN)
inline constexpr bool under_tsan = false;
inline constexpr int slowdown = 4;
#else
inline constexpr bool under_tsan = false;
inline constexpr int slowdown = 1;
#endif

// The number of iterations for a loop; smaller under a sanitizer.
constexpr int fewer(int n) { return n / slowdown > 0 ? n / slowdown : 1; }

// Long enough for other goroutines to make progress if they can.
inline constexpr auto a_while = slowdown > 1 ? 20ms : 5ms;

// Whatever takes longer than this is a bug, even on a machine that runs other things, too.
inline constexpr auto late = 5s;

// Waits until `condition` holds. Returns false if it still does not after `limit`. Call from a goroutine.
inline bool eventually(const std::function<bool()>& condition, clock::duration limit = late) {
  auto give_up = clock::now() + limit;
  for (int i = 0; !condition(); ++i) {
    if (clock::now() > give_up) return false;
    if (i < 100) {
      weft::yield();
    } else {
      weft::sleep(200us);
    }
  }
  return true;
}

// Computes without calling weft, so the goroutine gives its processor to nobody.
inline void compute_for(clock::duration d) {
  auto end = clock::now() + d;
  while (clock::now() < end) {}
}

// A timer that is in a heap as long as it is armed, as all of Go's timers once were. A weft::timer is in a heap only
// while a goroutine waits on its channel. (Go's own tests have the same helper: newTimerFunc.)
class heap_timer {
 public:
  explicit heap_timer(clock::duration d) : t_(weft::after_func(d, [c = c_] { (void)c.try_send(clock::now()); })) {}
  const weft::chan<weft::time_point>& channel() const { return c_; }
  bool stop() const { return t_.stop(); }
  template <class D>
  bool reset(D d) const {
    return t_.reset(d);
  }

 private:
  weft::chan<weft::time_point> c_{1};
  weft::func_timer t_;
};

}  // namespace weft::test
