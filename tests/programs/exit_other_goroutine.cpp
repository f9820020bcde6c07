// A goroutine calls exit() while main waits for it and others are at work.
#include "exit/busy.hpp"

int main() {
  return weft::run(
      [] {
        busy::start();
        weft::spawn([] { std::exit(4); }).join();
      },
      {.procs = 4});
}
