// The deadlock check of a child of fork(): the signal channels of the parent do not silence it, as nobody feeds them
// there.
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  const weft::chan<int> signals = weft::io::signal_channel({SIGUSR1});
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    weft::run([] { weft::chan<int>().recv(); });
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
