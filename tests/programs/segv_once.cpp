// A handler that asked to be called once, with another signal blocked meanwhile, is called like that; the next fault
// has the default action.
#include <csignal>
#include <cstdint>
#include <string>
#include <unistd.h>
#include <weft/weft.hpp>

namespace {

void say(const char* text) { (void)!::write(2, text, std::char_traits<char>::length(text)); }

void handler(int, siginfo_t*, void*) {
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  say(sigismember(&now, SIGUSR2) ? "called\n" : "not blocked\n");
}

}  // namespace

int main() {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND);
  sigaddset(&action.sa_mask, SIGUSR2);
  ::sigaction(SIGSEGV, &action, nullptr);
  ::alarm(20);
  return weft::run([] {
    volatile std::uintptr_t nowhere = 16;
    *reinterpret_cast<volatile int*>(nowhere) = 1;
  });
}
