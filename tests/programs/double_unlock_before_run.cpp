// Misuse before any run(): the report has the trace, too.
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
  weft::mutex m;
  unlocks_twice(m);
}
