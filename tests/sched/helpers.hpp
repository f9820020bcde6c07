// What the tests of the running scheduler share: tools to make two threads meet at one place.
#pragma once

#include "sched/scheduler.hpp"
#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <thread>
#include <utility>

namespace weft::test {

namespace rt = weft::rt;

inline constexpr auto a_moment = 2ms;  // for others to get where they have to wait

// Waits until `condition` holds. Returns false if it still does not after `limit`. Does not call weft, so the P stays
// where it is; sleeps, so that others can have the processor.
inline bool stay_until(const std::function<bool()>& condition, clock::duration limit = late) {
  auto give_up = clock::now() + limit;
  while (!condition()) {
    if (clock::now() > give_up) return false;
    std::this_thread::sleep_for(50us);
  }
  return true;
}
inline bool stay_until(const std::atomic<bool>& condition) {
  return stay_until([&] { return condition.load(); });
}

// A thread that holds sched.mutex. Ms have to wait for it when they give up their Ps or want new ones.
class held_scheduler {
 public:
  held_scheduler()
      : thread_([this] {
          rt::lock_guard hold(rt::sched.mutex);
          holds_ = true;
          stay_until(over_);
        }) {
    stay_until(holds_);
  }
  ~held_scheduler() { release(); }
  void release() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> holds_{false}, over_{false};
  std::thread thread_;
};

// Pretends to be an M that spins, and that may find the work, or other work.
class pretended_spinner {
 public:
  pretended_spinner() { rt::sched.spinning.fetch_add(1, rt::seq_cst); }
  ~pretended_spinner() { stop(); }
  void stop() {
    if (std::exchange(spins_, false)) rt::sched.spinning.fetch_sub(1, rt::seq_cst);
  }

 private:
  bool spins_ = true;
};

// A goroutine that waits to be made ready.
struct sleeper {
  chan<int> c;
  std::atomic<bool> ran{false};
  weft::task<void> goroutine = weft::spawn([this] {
    c.recv();
    ran = true;
  });

  bool wake() { return c.try_send(1); }  // false: the goroutine does not wait yet
  bool runs() { return stay_until(ran); }
  ~sleeper() { c.close(); }
};

// A goroutine that computes on the other P until it is told to stop. Once it computes, those that were started before
// it wait.
struct neighbour {
  std::atomic<bool> computes{false}, over{false};
  weft::task<void> goroutine = weft::spawn([this] {
    weft::no_preemption alone;
    computes = true;
    stay_until(over);
  });

  neighbour() {
    weft::sleep(a_moment);
    stay_until(computes);
  }
  ~neighbour() { over = true; }
};

// Calls f until it has returned three times that the situation came about. A busy machine prevents that now and then.
template <class F>
void three_times(F f) {
  int times = 0;
  for (int i = 0; i < 30 && times < 3; ++i) times += f();
  CHECK(times == 3);
}

}  // namespace weft::test
