// While a goroutine computes under no_preemption, the world cannot be stopped for the trace. The others must go on, and
// run() must end.
#include <atomic>
#include <stdlib.h>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  ::setenv("WEFT_DEBUG", "schedtrace=30,scheddetail=1", 1);
  static std::atomic<bool> stop{false};
  int rc = weft::run(
      [] {
        weft::go([] {
          weft::no_preemption keeps_its_p;
          while (!stop) {}
        });
        for (int i = 0; i < 30; ++i) weft::sleep(5ms);
      },
      {.procs = 2, .shutdown_grace = 10ms});
  stop = true;
  return rc;
}
