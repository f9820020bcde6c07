// A handler that leaves a fault by a jump, and later one on top of weft's, which passes the next fault on: that fault
// gets to the first handler, too.
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <unistd.h>
#include <weft/weft.hpp>

namespace {

sigjmp_buf out;
struct sigaction below;

void install(void (*handler)(int, siginfo_t*, void*), struct sigaction* before) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, before);
}

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
  install(leave, nullptr);
  return weft::run([] {
    if (!fault_is_left()) return 1;
    install(pass_on, &below);
    if (!fault_is_left() || !fault_is_left()) return 2;
    std::fputs("left three times\n", stderr);
    return 0;
  });
}
