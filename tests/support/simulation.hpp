// All of weft, with its Ms, its monitor and its poller, in interleavings that a seed decides.
//
// The library's own sources are compiled with -DWEFT_INTERLEAVE and a run queue for four goroutines. Its threads are
// those of interleave.hpp; pthread_create, futexes, the clock, nanosleep, epoll and sysmon's alarm are ours
// (simulation.cpp). Time goes on a little with each look at the clock, and from deadline to deadline when all threads
// sleep. Whenever they do, the promises of append-check-wake, of the dozer and of the poller (sched/proc.cpp,
// sched/find.cpp) are looked after:
//
//   - no goroutine is queued while a P idles, but what is some P's very next, or crumbs, while one dozes;
//   - no M sleeps to which a goroutine is pinned that is ready;
//   - somebody sleeps in the poller, no longer than until the earliest timer.
//
// But for when all the threads that there may be are held by goroutines, and while somebody has promised to do it all
// (sched/burst.cpp): then sysmon sleeps no longer than the promise holds.
//
// So a lost wake-up is seen at once, also one that sysmon would repair a moment later.
//
//   simulation s(seed);
//   s.add_weft([&] { ... });  // main
//   s.add([&] { ... });       // one more thread
//   REQUIRE(s.run() == "");
//
// When a seed has failed, weft is not in order any more, and no further one is tried. A seed does the same again only
// if those before it did, at the same addresses, as which bell a lock has hangs on its address: try `setarch -R`.
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

  // From 1 to 3, as the seed says.
  unsigned procs() const noexcept { return procs_; }

  // A thread that is none of weft's.
  void add(std::function<void()> thread);
  // One that calls weft::run(), with so many Ps.
  void add_weft(std::function<void()> main, unsigned max_threads = weft::options().max_threads);

  // As interleaving::run.
  std::string run();

  // For the threads and goroutines.
  bool one_in(std::uint32_t n) noexcept { return random().below(n) == 0; }
  rt::nanos up_to(rt::nanos d) noexcept { return random().below(static_cast<std::uint32_t>(d)); }

  // For goroutines and threads: they compute, or block, for so long. Without weft, so a goroutine's P may be taken.
  static void compute(rt::nanos d);

 private:
  void* take_thread_state() noexcept override;
  void put_thread_state(void* state) noexcept override;
  std::string all_sleep() override;
  void look_for_crumbs() noexcept;

  unsigned procs_;
  std::uint32_t crumbs_in_doze_ = 0;  // the Ps whose rings were held to hold crumbs since somebody dozes, as bits
};

}  // namespace weft::test
