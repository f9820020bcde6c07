// The report of misuse finds room on the smallest stack, also for readable names.
#include <weft/weft.hpp>

namespace {
__attribute__((noinline)) void unlocks_twice(weft::mutex& m) {
  m.lock();
  m.unlock();
  m.unlock();
  asm volatile("");
}
}  // namespace

int main() {
  return weft::run([] {
    weft::mutex m;
    weft::go({.name = "small", .stack_size = 1}, [&] { unlocks_twice(m); });
    weft::chan<int>().recv();
  });
}
