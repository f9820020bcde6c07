// Drives a protocol through its interleavings: only one thread runs at a time, in an order that a seed determines.
//
// The code under test is compiled with -DWEFT_INTERLEAVE (runtime/atomic.hpp): before each atomic access, the running
// thread may be exchanged for another one. The threads are fibers on the calling thread, so a switch costs nanoseconds,
// and a second is enough for tens of thousands of seeds. Futexes are modelled, too (interleave_futex.cpp): a thread
// that sleeps runs on only after it was woken, so a lost wake-up shows as "deadlock". support/simulation.hpp runs the
// whole of weft like this.
//
//   for (std::uint64_t seed = 0; seed < 10000; ++seed) {
//     interleaving threads(seed);
//     threads.add([&] { ... });
//     threads.add([&] { ... });
//     INFO("seed " << seed);
//     REQUIRE(threads.run() == "");
//   }
//
// It models of memory orders what x86-64 makes of them (keep_stores): a store that is not seq_cst may be kept back
// while the thread reads on, until the thread's next read-modify-write, seq_cst store or system call. Other threads see
// the stores of a thread in order. This is the reordering for which a "Dekker" needs seq_cst. A missing release or
// acquire is found by the tests named *_race_test, which use real threads under ThreadSanitizer.
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

  // Adds a thread and returns its number. A running thread may call this, too.
  std::size_t add(std::function<void()> thread);
  // The thread may sleep forever: run() does not wait for it.
  void forget(std::size_t thread);

  // Call before run(). A thread that is switched away from may stand still for many steps.
  void stall_threads() noexcept { stalls_ = 12; }
  // The same, for much longer, but only one thread at a time, so that the others get far meanwhile.
  void stall_one_thread() noexcept {
    stalls_ = 16;
    one_stalls_ = true;
  }
  // Call before run(). Other threads may see a store late unless it is seq_cst. Not for tests whose threads also
  // communicate by plain variables.
  void keep_stores() noexcept { keeps_stores_ = true; }

  // Runs until every thread has returned. Returns "", or what went wrong: "deadlock" (all threads sleep), "livelock"
  // (they do not come to an end), or the message that a thread passed to fail().
  std::string run(std::size_t max_steps = 200000);

  // For the threads: the number of the calling thread; add() counts from 0.
  static std::size_t current() noexcept;

  // For the threads: random numbers that the seed determines.
  rt::random_source& random() noexcept { return random_; }

  // For the threads: ends the test with this message. Does not return.
  [[noreturn]] static void fail(std::string message);
  static void check(bool condition, const char* message) {
    if (!condition) fail(message);
  }

  // For the threads: lets the other threads run until a plain condition holds.
  static void wait_until(const std::function<bool()>& condition);

  // --- for models of the system

  // True while a thread runs; false before run(), between threads, and after run().
  static bool running() noexcept;
  // Lets other threads run. Does nothing outside of run().
  static void leave() noexcept;
  // Puts the calling thread to sleep. True: wake(word) has woken it. False: now() has reached `deadline`.
  static bool sleep_on(const void* word, rt::nanos deadline = rt::forever) noexcept;
  // Wakes up to `count` threads that sleep on `word`. The seed decides which: the order is not defined.
  static void wake(const void* word, int count) noexcept;
  // Makes kept stores visible to all threads: those of the calling thread, or those of every thread.
  static void show_stores() noexcept;
  static void show_all_stores() noexcept;

  // Simulated time. It advances a little with each step, by pass_time(), and to the earliest deadline when all threads
  // sleep.
  static rt::nanos now() noexcept;
  static void pass_time(rt::nanos d) noexcept;

 protected:
  rt::nanos earliest_deadline_on(const void* word) const noexcept;  // of the threads that sleep there; else rt::forever

 private:
  friend struct interleave_access;
  struct fiber;

  // What a thread owns beside its stack. run() calls `put` before each stretch in which a thread runs, and `take` after
  // it.
  virtual void* take_thread_state() noexcept { return nullptr; }
  virtual void put_thread_state(void*) noexcept {}
  // Called when all threads sleep, and some have a deadline. Returns "", or what is wrong.
  virtual std::string all_sleep() { return ""; }

  void back_to_run() noexcept;
  std::string wake_the_late();
  fiber* choose(std::size_t step);

  rt::random_source random_;
  std::uint32_t switch_one_in_;
  unsigned stalls_ = 0;  // 0: threads do not stall; else a stall lasts less than 2^(stalls_ - 1) steps
  bool one_stalls_ = false;
  bool keeps_stores_ = false;
  rt::nanos now_ = rt::second;
  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<fiber*> ready_;
  fiber* current_ = nullptr;
  std::string failure_;
};

// The number of seeds for a test to try: `usual`, times WEFT_TEST_SEEDS if that is set (for a longer search by hand).
std::uint64_t seeds(std::uint64_t usual);

}  // namespace weft::test
