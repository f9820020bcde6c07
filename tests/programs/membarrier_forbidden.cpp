// A program forbids itself membarrier after weft has found, at start-up, that it works. weft must say so when it has to
// take a P.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <sys/syscall.h>
#include <weft/weft.hpp>

#include "tests/programs/support/forbid.hpp"

int main() {
  if (!forbid_system_call(SYS_membarrier, EPERM)) {
    std::perror("seccomp");
    return 1;
  }
  weft::run(
      [] {
        weft::go([] {
          for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
               std::chrono::steady_clock::now() < end;) {}
        });
        weft::yield();
      },
      {.procs = 1});
  return 0;
}
