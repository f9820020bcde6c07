// A stack overflow while all signals are blocked: programs that have one thread take the signals block them before they
// start other threads.
#include "tests/support/endless.hpp"

#include <csignal>
#include <weft/weft.hpp>

int main() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  return weft::run([] {
    weft::go({.name = "deep"}, [] { endless(0); });
    weft::chan<int>().recv();
  });
}
