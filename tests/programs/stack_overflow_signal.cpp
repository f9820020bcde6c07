// A signal whose handler runs on the goroutine's own stack, at a moment at which that has no room for the signal's
// frame. The kernel sends a SIGSEGV that belongs to no instruction.
#include <csignal>
#include <cstdio>
#include <sys/syscall.h>
#include <unistd.h>
#include <weft/weft.hpp>

namespace {

volatile int handled = 0;

// Returns the deepest call in which the signal came through.
[[gnu::noinline]] int signal_at_each_depth(int depth) {
  volatile char room[64];
  room[0] = 1;
  ::syscall(SYS_tgkill, ::getpid(), ::gettid(), SIGUSR1);
  if (handled != depth) return depth;
  return signal_at_each_depth(depth + 1) + room[0] - 1;
}

}  // namespace

int main() {
  struct sigaction action {};
  action.sa_handler = [](int) { handled = handled + 1; };
  ::sigaction(SIGUSR1, &action, nullptr);
  weft::run([] {
    weft::spawn({.name = "deep", .stack_size = 16 * 1024}, [] { signal_at_each_depth(1); }).join();
    std::fputs("survived\n", stderr);
  });
}
