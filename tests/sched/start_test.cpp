// The beginning of run(): threads of the program may start goroutines as soon as it runs, before main and its M exist.

#include "tests/sched/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace weft::test;

namespace {
std::function<void()> before_the_first_m;
}

extern "C" {
void __real__ZN4weft2rt13start_first_mEv();
void __wrap__ZN4weft2rt13start_first_mEv() {
  if (before_the_first_m) std::exchange(before_the_first_m, nullptr)();
  __real__ZN4weft2rt13start_first_mEv();
}
}

TEST_CASE("start: a thread's goroutine takes the only P before main is there") {
  std::atomic<bool> took_it{false}, go_on{false};
  std::thread ender;
  before_the_first_m = [&] {
    std::thread([&] {
      weft::go([&] {
        took_it = true;
        stay_until(go_on);
      });
    }).join();
    CHECK(stay_until(took_it));
    ender = std::thread([&] {
      std::this_thread::sleep_for(a_moment);  // until the first M exists, if one is started
      go_on = true;
    });
  };
  weft::run(
      [&] {
        // No M is left that counts as looking for work but does not look: otherwise nobody would be woken any more.
        CHECK(stay_until([] { return weft::runtime_stats().spinning_threads == 0; }));
      },
      {.procs = 1});
  ender.join();
}
