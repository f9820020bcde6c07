// Fork and join without any cut-off: every call of fib() starts a goroutine.
#include <weft/task.hpp>

#include "benchmarks/support/bench.hpp"

namespace {

long fib(int n) {
  if (n < 2) return n;
  auto left = weft::spawn(fib, n - 1);
  long right = fib(n - 2);
  return left.join() + right;
}

// One operation: a goroutine started. fib(n) starts as many as fib(n - 1) and fib(n - 2) together, and one more.
void forkjoin(bench::job& j) {
  int n = 2;
  std::size_t spawned = 1;
  for (std::size_t before = 0; spawned < j.count(800'000); ++n) {
    before = std::exchange(spawned, before + spawned + 1);
  }
  j.measure_once(spawned, [=] { bench::keep(fib(n)); });
}

const bench::workloads here{
    {"fib", forkjoin},
};

}  // namespace
