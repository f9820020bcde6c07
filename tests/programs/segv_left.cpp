// A handler that leaves a fault by a jump, and later one on top of weft's, which passes the next fault on: that fault
// gets to the first handler, too.
#include "support/segv.hpp"

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <unistd.h>
#include <weft/weft.hpp>

namespace {

sigjmp_buf out;
struct sigaction below;

void leave(int, siginfo_t*, void*) { siglongjmp(out, 1); }

void pass_on(int signal, siginfo_t* info, void* context) { below.sa_sigaction(signal, info, context); }

bool fault_is_left() {
  if (sigsetjmp(out, 1) != 0) return true;
  volatile int* volatile nowhere = reinterpret_cast<int*>(std::uintptr_t{16});
  *nowhere = 1;
  return false;
}

}  // namespace

int main() {
  install_segv_handler(leave, nullptr);
  return weft::run([] {
    if (!fault_is_left()) return 1;
    install_segv_handler(pass_on, &below);
    if (!fault_is_left() || !fault_is_left()) return 2;
    std::fputs("left three times\n", stderr);
    return 0;
  });
}
