// The usual way to have one thread take the signals: all are blocked before the others are started.
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
