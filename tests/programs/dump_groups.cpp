// Goroutines that wait in the same place are shown once, even if they got there by different ways inside weft.
#include <chrono>
#include <cstdio>
#include <weft/weft.hpp>

namespace {
__attribute__((noinline)) void waits_for_more(const weft::chan<int>& c, std::chrono::nanoseconds limit) {
  int v;
  c.recv_for(v, limit);
  asm volatile("");
}

__attribute__((noinline)) void waits_to_send(const weft::chan<int>& c) {
  c.send(1);
  asm volatile("");
}

__attribute__((noinline)) void start_workers(const weft::chan<int>& in, const weft::chan<int>& out) {
  using namespace std::chrono_literals;
  for (int i = 0; i < 40; ++i) {
    const std::chrono::nanoseconds limit = i % 3 ? std::chrono::nanoseconds::max() : 1h;
    weft::go({.name = i % 2 ? "odd" : "even"}, [=] { waits_for_more(in, limit); });
    if (i == 30) weft::sleep(300ms);
  }
  for (int i = 0; i < 3; ++i) weft::go([=] { waits_to_send(out); });
  weft::go({.name = "other"}, [=] { waits_for_more(in, 1h); });  // started elsewhere
}
}  // namespace

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::chan<int> in, out;
    start_workers(in, out);
    while (weft::runtime_stats().waiting < 44) weft::sleep(10ms);
    weft::dump_goroutines(stderr);
  });
}
