#include <cstdio>
#include <thread>
#include <weft/weft.hpp>

namespace {
__attribute__((noinline)) void waits_here(const weft::chan<int>& c) {
  c.recv();
  asm volatile("");
}
__attribute__((noinline)) void calls_here() {
  weft::blocking([] { std::this_thread::sleep_for(std::chrono::seconds(2)); });
  asm volatile("");
}
}  // namespace

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::chan<int> c;
    weft::go({.name = "receiver"}, [=] { waits_here(c); });
    weft::go({.name = "sleeper"}, [] { weft::sleep(1h); });
    weft::go({.name = "caller"}, calls_here);
    weft::sleep(10ms);
    weft::dump_goroutines(stderr);
    std::fprintf(stderr, "-- with a name, and how long\n");
    weft::sleep(1100ms);
    weft::dump_goroutines(stderr);
  });
}
