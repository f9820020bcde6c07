// Reads errno after a suspension, in a function that has used errno before. Exit code 0: the value was right; 1: the
// compiler had kept the address of another thread's errno. Compiled with and without WEFT_SAFE_ERRNO=0, and run with
// WEFT_DEBUG=hazard=1.
#include <cerrno>
#include <cstdio>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    int wrong = 0;
    for (int i = 1; i <= 20; ++i) {
      errno = i;
      weft::yield();
      wrong += errno != i;
    }
    std::printf("%d of 20 wrong\n", wrong);
    return wrong != 0;
  });
}
