// Boost.Fiber with PROCS threads: its round-robin scheduler on one thread, its work-stealing scheduler on more, as its
// documentation shows. The stacks come from malloc, which is told to keep what is freed: so it is a pool that several
// threads may use.
#include <malloc.h>

#include <boost/fiber/algo/work_stealing.hpp>
#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/mutex.hpp>
#include <boost/fiber/operations.hpp>

#include <mutex>
#include <thread>
#include <vector>

#include "benchmarks/support/bench.hpp"

namespace {

void run_on_threads(unsigned procs, auto&& f) {
  using boost::fibers::algo::work_stealing;
  boost::fibers::mutex m;
  boost::fibers::condition_variable ended;
  bool end = false;
  std::vector<std::thread> others;
  for (unsigned p = 1; p < procs; ++p) {
    others.emplace_back([&] {
      boost::fibers::use_scheduling_algorithm<work_stealing>(procs);
      std::unique_lock lock(m);
      ended.wait(lock, [&] { return end; });
    });
  }
  boost::fibers::use_scheduling_algorithm<work_stealing>(procs);
  f();
  {
    std::unique_lock lock(m);
    end = true;
  }
  ended.notify_all();
  for (auto& t : others) t.join();
}

}  // namespace

void bench::enter(job& j, void (*run)(job&)) {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value that malloc accepts
  mallopt(M_TRIM_THRESHOLD, -1);
  if (j.procs() == 1) return run(j);
  run_on_threads(j.procs(), [&] { run(j); });
}
