// A thread that is stuck in the runtime, so that the world cannot be stopped: SIGQUIT shows what can be shown all the
// same, and ends the process.
#include "sched/enter.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

int main() {
  weft::run(
      [] {
        static std::atomic<bool> stuck{false};
        weft::go({.name = "parked"}, [] { weft::sleep(1h); });
        weft::go({.name = "stuck"}, [] {
          weft::rt::enter_runtime();
          stuck = true;
          for (;;) {}
        });
        while (!stuck) weft::sleep(1ms);
        std::raise(SIGQUIT);
        weft::sleep(1h);
      },
      {.procs = 2});
}
