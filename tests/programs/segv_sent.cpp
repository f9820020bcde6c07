// A SIGSEGV that was sent, and is not a fault, must be passed on, too: unlike a fault, it does not happen a second time
// by itself.
#include <csignal>
#include <cstdio>
#include <weft/weft.hpp>

int main() {
  std::signal(SIGSEGV, SIG_IGN);
  weft::run([] { std::raise(SIGSEGV); });
  std::signal(SIGSEGV, SIG_DFL);
  return weft::run([] {
    std::fputs("still here\n", stderr);
    std::raise(SIGSEGV);
    std::fputs("survived\n", stderr);
  });
}
