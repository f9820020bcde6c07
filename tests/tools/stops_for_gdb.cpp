// Goroutines in known places. One of them runs, and stops at gdb's breakpoint; the others are parked. With an argument,
// the program dumps core.
#include <cstdlib>
#include <weft/weft.hpp>

extern "C" __attribute__((noinline)) void gdb_stops_here() { asm volatile(""); }

namespace {

weft::chan<int> nobody_sends;

__attribute__((noinline)) int parked_below() {
  int n = nobody_sends.recv().value_or(0);
  asm volatile("" : : "r"(n));
  return n;
}
__attribute__((noinline)) int parked_here() { return parked_below() + 1; }

__attribute__((noinline)) void running_here() {
  gdb_stops_here();
  asm volatile("");
}

}  // namespace

int main(int argc, char**) {
  return weft::run(
      [&] {
        weft::go({.name = "parked"}, [] { parked_here(); });
        weft::yield();
        weft::task<void> t = weft::spawn({.name = "runner"}, [] { running_here(); });
        t.join();
        if (argc > 1) std::abort();
      },
      {.procs = 1});  // or the parked one might be stolen, and begin after the runner
}
