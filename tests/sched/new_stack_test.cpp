// New stacks (stack.cpp, park.cpp: next_local) are made many at a time, each with a guard, and nobody waits meanwhile.
// The linker puts functions of this test in front of the two functions that make them.
//
// Kills these mutants (tests/mutants): stack-made-under-lock, guards-half-forgotten.

#include "runtime/advise.hpp"
#include "runtime/stack.hpp"
#include "sched/enter.hpp"
#include "tests/sched/helpers.hpp"
#include "tests/support/catch.hpp"

#include <cerrno>
#include <unistd.h>

using namespace weft::test;
using weft::chan;

namespace {

std::atomic<bool> came{false}, stops_at_new_stack{false}, at_new_stack{false}, answered{false}, in_time{false};
std::atomic<bool> kernel_does_half{false};

// True if the address cannot be read.
bool is_guard(int pipe_end, const std::byte* address) {
  return ::write(pipe_end, address, 1) == -1 && weft::rt::get_errno() == EFAULT;
}

}  // namespace

extern "C" std::size_t __real__ZN4weft2rt10stack_takeEPNS0_11stack_classEPPNS0_5stackEm(rt::stack_class*, rt::stack**,
                                                                                        std::size_t);
extern "C" std::size_t __wrap__ZN4weft2rt10stack_takeEPNS0_11stack_classEPPNS0_5stackEm(rt::stack_class* c,
                                                                                        rt::stack** out,
                                                                                        std::size_t n) {
  if (stops_at_new_stack.exchange(false)) {
    at_new_stack = true;
    in_time = stay_until(answered);
  }
  return __real__ZN4weft2rt10stack_takeEPNS0_11stack_classEPPNS0_5stackEm(c, out, n);
}

extern "C" std::size_t __real__ZN4weft2rt11advise_eachEPKPSt4bytemi(std::byte* const*, std::size_t, int) noexcept;
extern "C" std::size_t __wrap__ZN4weft2rt11advise_eachEPKPSt4bytemi(std::byte* const* pages, std::size_t n,
                                                                    int advice) noexcept {
  return __real__ZN4weft2rt11advise_eachEPKPSt4bytemi(pages, kernel_does_half ? n / 2 : n, advice);
}

TEST_CASE("new stack: while it is made for the next goroutine, what the last one waits for is not locked") {
  weft::run(
      [] {
        chan<int> c;
        std::thread other([&] {
          chan<int>(1).send(1);  // the first call of a thread waits for those that are in the runtime
          came = true;
          stay_until(at_new_stack);
          c.try_send(1);
          answered = true;
        });
        CHECK(weft::test::eventually([&] { return came.load(); }));
        // One goroutine more than a P keeps free stacks.
        std::vector<weft::task<void>> all;
        for (std::size_t i = 0; i <= rt::p_cache; ++i) all.push_back(weft::spawn([] { weft::yield(); }));
        stops_at_new_stack = true;
        c.recv();
        for (auto& t : all) t.join();
        other.join();
        CHECK(in_time);
      },
      {.procs = 1});
}

TEST_CASE("new stacks: each has a guard, also if the kernel does half of what it is asked for at once") {
  for (bool half : {false, true}) {
    kernel_does_half = half;
    weft::run([] {
      int ends[2];
      REQUIRE(::pipe(ends) == 0);
      chan<void> gate;
      std::atomic<int> guarded{0};
      std::vector<weft::task<void>> all;
      for (int i = 0; i < 1000; ++i) {
        all.push_back(weft::spawn([&, gate]() mutable {
          const std::byte* lo = rt::this_m()->g->own_stack->lo;
          if (is_guard(ends[1], lo - 1) && is_guard(ends[1], lo - rt::page) && !is_guard(ends[1], lo)) ++guarded;
          gate.recv();
        }));
      }
      CHECK(weft::test::eventually([&] { return guarded == 1000; }));
      gate.close();
      for (auto& t : all) t.join();
      ::close(ends[0]);
      ::close(ends[1]);
    });
  }
  kernel_does_half = false;
}
