#include "benchmarks/timer_generations/counted_lock.hpp"

#include <cstdio>
#include <cstdlib>

namespace generations {

namespace {

constexpr unsigned most_threads = 256;
thread_waits table[most_threads];
rt::atomic<unsigned> used{0};

}  // namespace

thread_waits& detail::register_thread() {
  unsigned i = used.fetch_add(1, rt::relaxed);
  if (i >= most_threads) {
    std::fprintf(stderr, "more than %u threads\n", most_threads);
    std::abort();
  }
  mine = &table[i];
  return *mine;
}

wait_totals total_waits() {
  wait_totals sum;
  for (unsigned i = 0, n = used.load(rt::relaxed); i < n; ++i) {
    sum.acquired += table[i].acquired.load(rt::relaxed);
    sum.waited += table[i].waited.load(rt::relaxed);
    sum.yielded += table[i].yielded.load(rt::relaxed);
  }
  return sum;
}

// meson.build asks the linker to wrap two functions (--wrap): calls of X go to __wrap_X, and __real_X is X itself.

void real_acquire_slow(rt::lock* l) noexcept asm("__real__ZN4weft2rt4lock12acquire_slowEv");
void wrapped_acquire_slow(rt::lock* l) noexcept asm("__wrap__ZN4weft2rt4lock12acquire_slowEv");
int real_yield() noexcept asm("__real_sched_yield");
int wrapped_yield() noexcept asm("__wrap_sched_yield");

void wrapped_acquire_slow(rt::lock* l) noexcept {
  count(my_waits().waited);
  real_acquire_slow(l);
}

int wrapped_yield() noexcept {
  count(my_waits().yielded);
  return real_yield();
}

}  // namespace generations
