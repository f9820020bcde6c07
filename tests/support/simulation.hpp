// Runs all of weft, with its Ms, sysmon and the poller, through interleavings that a seed determines.
//
// The library's own sources are compiled with -DWEFT_INTERLEAVE and with run queues for four goroutines. Its threads
// are those of interleave.hpp. simulation.cpp replaces pthread_create, futexes, the clock, nanosleep, epoll and
// sysmon's alarm. Time advances a little with each look at the clock, and to the next deadline when all threads sleep.
// Whenever they all sleep, the simulation checks what append-check-wake, the dozer and the poller promise
// (sched/proc.cpp, sched/find.cpp):
//
//   - No goroutine is queued while a P idles. While an M dozes, a goroutine in a P's runnext and crumbs are excepted.
//   - No M sleeps while a goroutine that is pinned to it is ready.
//   - An M sleeps in the poller, no longer than until the earliest timer.
//
// These promises do not hold while goroutines hold all the threads that weft may have. They do not hold either while an
// M has promised to do all the work (sched/burst.cpp); then sysmon must sleep no longer than the promise holds.
//
// So a lost wake-up is found at once, even one that sysmon would repair a moment later.
//
//   simulation s(seed);
//   s.add_weft([&] { ... });  // main
//   s.add([&] { ... });       // one more thread
//   REQUIRE(s.run() == "");
//
// After a seed has failed, weft's state is broken, so no further seed is tried. A seed repeats its run only after the
// same earlier seeds, and at the same addresses (a lock's bell depends on its address): try `setarch -R`.
#pragma once

#include "tests/support/interleave.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <weft/runtime.hpp>

namespace weft::test {

class simulation : public interleaving {
 public:
  explicit simulation(std::uint64_t seed);

  // From 1 to 3, determined by the seed.
  unsigned procs() const noexcept { return procs_; }

  // Adds a thread that is not weft's.
  void add(std::function<void()> thread);
  // Adds a thread that calls weft::run() with procs() Ps.
  void add_weft(std::function<void()> main, unsigned max_threads = weft::options().max_threads);

  // The same as interleaving::run.
  std::string run();

  // For the threads and goroutines.
  bool one_in(std::uint32_t n) noexcept { return random().below(n) == 0; }
  rt::nanos up_to(rt::nanos d) noexcept { return random().below(static_cast<std::uint32_t>(d)); }

  // For goroutines and threads: computes, or blocks, for this long. weft is not told, so a goroutine's P may be taken.
  static void compute(rt::nanos d);

 private:
  void* take_thread_state() noexcept override;
  void put_thread_state(void* state) noexcept override;
  std::string all_sleep() override;
  void look_for_crumbs() noexcept;

  unsigned procs_;
  std::uint32_t crumbs_in_doze_ = 0;  // a bit for each P whose ring held crumbs at some time since the doze began
};

}  // namespace weft::test
