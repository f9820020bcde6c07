// A fault that is not a stack overflow goes to the handler that was installed before.
#include <csignal>
#include <cstdio>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  std::signal(SIGSEGV, [](int) { _exit(5); });
  return weft::run([] {
    weft::go([] {
      volatile int* volatile nowhere = reinterpret_cast<int*>(16);
      *nowhere = 1;
    });
    weft::chan<int>().recv();
  });
}
