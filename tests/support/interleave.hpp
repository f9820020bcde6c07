// Drives a protocol through its interleavings: threads of which one runs at a time, in an order that a seed decides.
//
// The code under test is compiled with -DWEFT_INTERLEAVE (runtime/atomic.hpp): before each atomic access the running
// thread may be exchanged for another one. The threads are fibers on the calling thread, so that a change costs
// nanoseconds, and ten thousands of seeds fit in a second. Futexes are modelled, too (interleave_futex.cpp): a thread
// that sleeps runs on only when it is woken, so a lost wake-up shows as "deadlock". The whole of weft runs like this in
// support/simulation.hpp.
//
//   for (std::uint64_t seed = 0; seed < 10000; ++seed) {
//     interleaving threads(seed);
//     threads.add([&] { ... });
//     threads.add([&] { ... });
//     INFO("seed " << seed);
//     REQUIRE(threads.run() == "");
//   }
//
// Of memory orders it sees what x86-64 makes of them (keep_stores): a store that is not seq_cst may be kept back, while
// the thread reads on, until its next read-modify-write, seq_cst store or system call; the others see a thread's stores
// in their order. That is what a "Dekker" needs seq_cst for. A missing release or acquire the tests named *_race_test
// show to ThreadSanitizer, with real threads.
#pragma once

#include "runtime/atomic.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#if !defined(WEFT_INTERLEAVE)
#error "for tests that are compiled with -DWEFT_INTERLEAVE"
#endif

namespace weft::test {

class interleaving {
 public:
  explicit interleaving(std::uint64_t seed);
  virtual ~interleaving();
  interleaving(const interleaving&) = delete;
  interleaving& operator=(const interleaving&) = delete;

  // Also by a thread that runs. Its number.
  std::size_t add(std::function<void()> thread);
  // It may sleep for ever.
  void forget(std::size_t thread);

  // Before run(). A thread that is exchanged for another one may stand still for long.
  void stall_threads() noexcept { stalls_ = 12; }
  // The same, for much longer, but one at a time: the others get far meanwhile.
  void stall_one_thread() noexcept {
    stalls_ = 16;
    one_stalls_ = true;
  }
  // Before run(). Stores that are not seq_cst may be seen later. Not where plain variables of the test hand over.
  void keep_stores() noexcept { keeps_stores_ = true; }

  // Runs until every thread has returned: "". Else what went wrong: they all sleep ("deadlock"), they do not come to an
  // end ("livelock"), or what a thread said with fail().
  std::string run(std::size_t max_steps = 200000);

  // For the threads: which of them runs, in the order in which they were added.
  static std::size_t current() noexcept;

  // For the threads: random numbers that belong to the seed.
  rt::random_source& random() noexcept { return random_; }

  // Ends the test with this message. By a thread; it does not return.
  [[noreturn]] static void fail(std::string message);
  static void check(bool condition, const char* message) {
    if (!condition) fail(message);
  }

  // A thread that waits for a plain condition lets the others run meanwhile.
  static void wait_until(const std::function<bool()>& condition);

  // --- for models of the system

  // Whether one of the threads runs; else run() has not begun, or has ended.
  static bool running() noexcept;
  // Lets others run, if there are any. Outside of run() nothing.
  static void leave() noexcept;
  // The calling thread sleeps until wake(word), or until now() is `deadline`: false.
  static bool sleep_on(const void* word, rt::nanos deadline = rt::forever) noexcept;
  // Which of many sleepers is woken is not defined, and the seed decides.
  static void wake(const void* word, int count) noexcept;
  // What threads have stored, all see from here on: the calling one's, or that of all.
  static void show_stores() noexcept;
  static void show_all_stores() noexcept;

  // Time goes on a little with each step, by `pass_time`, and to the earliest deadline when all threads sleep.
  static rt::nanos now() noexcept;
  static void pass_time(rt::nanos d) noexcept;

 protected:
  rt::nanos earliest_deadline_on(const void* word) const noexcept;  // of those who sleep there; else rt::forever

 private:
  friend struct interleave_access;
  struct fiber;

  // What a thread has of its own beside its stack; called around each stretch in which it runs.
  virtual void* take_thread_state() noexcept { return nullptr; }
  virtual void put_thread_state(void*) noexcept {}
  // All threads sleep, some of them until a deadline. "", or what is wrong with that.
  virtual std::string all_sleep() { return ""; }

  void back_to_run() noexcept;
  std::string wake_the_late();
  fiber* choose(std::size_t step);

  rt::random_source random_;
  std::uint32_t switch_one_in_;
  unsigned stalls_ = 0;  // how long: the binary digits of the most steps
  bool one_stalls_ = false;
  bool keeps_stores_ = false;
  rt::nanos now_ = rt::second;
  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<fiber*> ready_;
  fiber* current_ = nullptr;
  std::string failure_;
};

// The number of seeds a test shall try; WEFT_TEST_SEEDS multiplies it (a longer search by hand).
std::uint64_t seeds(std::uint64_t usual);

}  // namespace weft::test
