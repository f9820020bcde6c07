// A SIGSEGV that was sent, and no fault, is passed on, too: nothing happens a second time by itself.
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
