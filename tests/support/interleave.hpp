// Drives a protocol through its interleavings: threads of which one runs at a time, in an order that a seed decides.
//
// The code under test is compiled with -DWEFT_INTERLEAVE (runtime/atomic.hpp): before each atomic access the running
// thread may be exchanged for another one. The threads are fibers on the calling thread, so that a change costs
// nanoseconds, and ten thousands of seeds fit in a second. Futexes are modelled, too (interleave.cpp): a thread that
// sleeps runs on only when it is woken, so a lost wake-up shows as "deadlock".
//
//   for (std::uint64_t seed = 0; seed < 10000; ++seed) {
//     interleaving threads(seed);
//     threads.add([&] { ... });
//     threads.add([&] { ... });
//     INFO("seed " << seed);
//     REQUIRE(threads.run() == "");
//   }
//
// What it does not see: memory orders. The accesses of all threads are in one order here; the tests named *_race_test
// show a missing release or acquire to ThreadSanitizer, with real threads.
#pragma once

#include "runtime/atomic.hpp"
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
  ~interleaving();
  interleaving(const interleaving&) = delete;
  interleaving& operator=(const interleaving&) = delete;

  // Also by a thread that runs.
  void add(std::function<void()> thread);

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

 private:
  friend struct interleave_access;
  struct fiber;

  void leave() noexcept;

  rt::random_source random_;
  std::uint32_t switch_one_in_;
  std::vector<std::unique_ptr<fiber>> fibers_;
  fiber* current_ = nullptr;
  std::string failure_;
};

// The number of seeds a test shall try; WEFT_TEST_SEEDS multiplies it (a longer search by hand).
std::uint64_t seeds(std::uint64_t usual);

}  // namespace weft::test
