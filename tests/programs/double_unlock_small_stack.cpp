// The report of misuse finds room on the smallest stack, also for readable names.
#include "support/unlocks_twice.hpp"
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::mutex m;
    weft::go({.name = "small", .stack_size = 1}, [&] { unlocks_twice(m); });
    weft::chan<int>().recv();
  });
}
