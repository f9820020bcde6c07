// A handler of SIGQUIT that the program installs during a run() is there after it, too.
#include <csignal>
#include <cstdio>
#include <weft/weft.hpp>

int main() {
  static volatile int handled = 0;
  weft::run([] {
    std::signal(SIGQUIT, [](int) { handled = handled + 1; });
    std::raise(SIGQUIT);
  });
  std::raise(SIGQUIT);
  std::fprintf(stderr, "handled %d\n", handled);
}
