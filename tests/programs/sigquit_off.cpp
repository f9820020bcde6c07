// After a run(), the disposition of SIGQUIT is what it was before. With sigquit_dump = false, it stays so during the
// run().
#include <csignal>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  ::signal(SIGQUIT, SIG_DFL);  // shells make programs in the background ignore it
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
