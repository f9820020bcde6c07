// With sigquit_dump = false the disposition stays what it was, and after run() it is that again.
#include <csignal>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  ::signal(SIGQUIT, SIG_DFL);  // shells ignore it for what they run in the background
  weft::run([] {});
  struct sigaction now {};
  ::sigaction(SIGQUIT, nullptr, &now);
  if (now.sa_handler != SIG_DFL) return 1;
  return weft::run(
      [] {
        ::kill(::getpid(), SIGQUIT);
        weft::sleep(std::chrono::hours(1));
      },
      {.sigquit_dump = false});
}
