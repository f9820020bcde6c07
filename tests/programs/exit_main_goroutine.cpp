// main's goroutine calls exit() while others are at work and wait.
#include "exit/busy.hpp"

int main() {
  return weft::run(
      [] {
        busy::start();
        std::exit(4);
      },
      {.procs = 4});
}
