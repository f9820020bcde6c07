// A thread of the program calls exit() while goroutines are at work.
#include "exit/busy.hpp"

#include <thread>

int main() {
  std::thread ender([] {
    while (weft::num_goroutines() < 40) ::usleep(1000);
    ::usleep(5000);
    std::exit(4);
  });
  return weft::run(
      [] {
        busy::start();
        busy::never.wait();
      },
      {.procs = 4});
}
