// main() returns after run(), which left goroutines behind: those that waited, and those that compute for ever.
#include "exit/busy.hpp"

int main() {
  weft::run([] { busy::start(); }, {.procs = 4, .shutdown_grace = std::chrono::milliseconds(20)});
  return 4;
}
