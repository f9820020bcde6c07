// The report of misuse fits on the smallest stack, even with readable names.
#include "support/unlocks_twice.hpp"
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::mutex m;
    weft::go({.name = "small", .stack_size = 1}, [&] { unlocks_twice(m); });
    weft::chan<int>().recv();
  });
}
