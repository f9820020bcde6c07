// A signal handler that meets a fault, and leaves it by a jump, is no goroutine that has run beyond its stack, although
// it runs on a stack that may lie right below one: the signal stack.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

namespace {

thread_local sigjmp_buf* volatile probing = nullptr;

void on_fault(int) {
  if (probing) siglongjmp(*probing, 1);
  std::_Exit(3);
}

// As a profiler does that reads what may not be there.
void probe(int) {
  sigjmp_buf before;
  if (sigsetjmp(before, 1) == 0) {
    probing = &before;
    volatile int* volatile nowhere = reinterpret_cast<int*>(16);
    (void)*nowhere;
  }
  probing = nullptr;
}

}  // namespace

int main() {
  struct sigaction fault {
  }, user{};
  fault.sa_handler = on_fault;
  fault.sa_flags = SA_ONSTACK;
  ::sigaction(SIGSEGV, &fault, nullptr);
  user.sa_handler = probe;
  user.sa_flags = SA_ONSTACK | SA_RESTART;
  ::sigaction(SIGUSR1, &user, nullptr);
  weft::run(
      [] {
        weft::wait_group all;
        for (int i = 0; i < 300; ++i) {
          all.go([] {
            for (int k = 0; k < 10; ++k) {
              weft::sleep(1ms);
              std::raise(SIGUSR1);
              if (k % 5 == 0) weft::blocking([] { std::this_thread::sleep_for(2ms); });  // makes further threads
            }
          });
        }
        all.wait();
        std::fputs("done\n", stderr);
      },
      {.procs = 4});
}
