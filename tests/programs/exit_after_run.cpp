// main() returns after run(), which has left goroutines behind: some that waited, and some that compute forever.
#include "exit/busy.hpp"

int main() {
  weft::run([] { busy::start(); }, {.procs = 4, .shutdown_grace = std::chrono::milliseconds(20)});
  return 4;
}
