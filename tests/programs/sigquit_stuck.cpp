// A thread is stuck in the runtime, so the world cannot be stopped. SIGQUIT must show what can be shown nevertheless,
// and end the process.
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
