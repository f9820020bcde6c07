// Handlers that were installed during a run(), and that pass what they get on to the handler that they found, which was
// weft's. A fault that nobody handles must come to an end, also after later run()s, in each of which one of the
// handlers was installed again. A handler that was left by a jump before must change nothing.
#include "support/segv.hpp"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <thread>
#include <unistd.h>
#include <weft/weft.hpp>

namespace {

struct sigaction before_first, before_second;
std::atomic<int> firsts = 0, seconds = 0;
thread_local sigjmp_buf out;
thread_local bool wants_out = false;

void pass_on(const struct sigaction& to, int signal, siginfo_t* info, void* context) {
  if (firsts + seconds > 100) _exit(77);  // the handlers call each other in a circle
  if (to.sa_flags & SA_SIGINFO) {
    to.sa_sigaction(signal, info, context);
  } else if (to.sa_handler == SIG_DFL) {
    ::signal(signal, SIG_DFL);
  } else {
    to.sa_handler(signal);
  }
}

void say(const char* line, std::size_t size) { [[maybe_unused]] ssize_t n = ::write(STDERR_FILENO, line, size); }

void first(int signal, siginfo_t* info, void* context) {
  ++firsts;
  if (wants_out) siglongjmp(out, 1);
  say("first\n", 6);
  pass_on(before_first, signal, info, context);
}

void second(int signal, siginfo_t* info, void* context) {
  ++seconds;
  if (!wants_out) say("second\n", 7);
  pass_on(before_second, signal, info, context);
}

void fault(std::uintptr_t at) {
  volatile int* volatile nowhere = reinterpret_cast<int*>(at);
  *nowhere = 1;
}

// A goroutine does not leave its thread in here, so it may use thread_local variables.
void fault_that_is_left(std::uintptr_t at) {
  wants_out = true;
  if (sigsetjmp(out, 1) == 0) fault(at);
  wants_out = false;
}

void faults_that_are_left(std::uintptr_t at) {
  for (int i = 0; i < 10; ++i) fault_that_is_left(at);
}

}  // namespace

int main() {
  std::signal(SIGSEGV, SIG_DFL);  // AddressSanitizer has installed one of its own
  weft::run([] { install_segv_handler(first, &before_first); });
  weft::run([] { install_segv_handler(second, &before_second); });
  weft::run([] {
    faults_that_are_left(16);
    std::thread t(faults_that_are_left, 32);  // at another address, or it is a data race
    faults_that_are_left(16);
    t.join();
  });
  if (firsts != 30 || seconds != 30) return 1;
  firsts = seconds = 0;
  weft::run([] { install_segv_handler(second, &before_second); });
  weft::run([] {
    weft::go(fault, 16);
    weft::chan<int>().recv();
  });
}
