// Five generations of timers under the same workloads. Runs one and prints one line of JSON; see ./run.
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "benchmarks/timer_generations/global_heap.hpp"
#include "benchmarks/timer_generations/heaps64.hpp"
#include "benchmarks/timer_generations/per_p.hpp"
#include "benchmarks/timer_generations/per_timer_lock.hpp"
#include "benchmarks/timer_generations/wheel.hpp"
#include "benchmarks/timer_generations/workloads.hpp"

namespace {

using namespace generations;

template <generation... T>
struct all_of {
  static void list() { (std::puts(T::name), ...); }

  // False: there is no generation of that name, or no workload.
  static bool run(const job& j, outcome& o) { return ((j.generation == T::name && run_one<T>(j, o)) || ...); }

 private:
  template <generation U>
  static bool run_one(const job& j, outcome& o) {
    if (j.workload == "create_stop") {
      o = create_stop<U>(j);
    } else if (j.workload == "replace") {
      o = replace<U>(j);
    } else if (j.workload == "reset") {
      o = reset<U>(j);
    } else if (j.workload == "fire") {
      o = fire<U>(j);
    } else {
      return false;
    }
    return true;
  }
};

using all = all_of<global_heap, heaps64, per_p, per_timer_lock, wheel>;

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "list") == 0) {
    all::list();
    return 0;
  }
  job j;
  if (argc == 5 || argc == 6) {
    j.generation = argv[1];
    j.workload = argv[2];
    j.timers = std::strtoul(argv[3], nullptr, 10);
    j.procs = static_cast<unsigned>(std::strtoul(argv[4], nullptr, 10));
    if (argc == 6) j.scale = std::atof(argv[5]);
  }
  if (j.procs == 0 || j.procs > 64 || j.timers < j.procs || j.scale <= 0) {
    std::fprintf(stderr, "usage: %s GENERATION create_stop|replace|reset|fire TIMERS PROCS [SCALE] | list\n", argv[0]);
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1);  // as weft's Ms have it; threads inherit it
  outcome o;
  try {
    if (!all::run(j, o)) {
      std::fprintf(stderr, "there is no %s of %s\n", j.workload.c_str(), j.generation.c_str());
      return 2;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  print(j, o);
  return 0;
}
