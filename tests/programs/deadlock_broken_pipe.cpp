// The report goes into a pipe that nobody reads any more. The process must not die by SIGPIPE, whatever its
// disposition.
#include <csignal>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  std::signal(SIGPIPE, SIG_DFL);
  int ends[2];
  if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) return 3;
  close(ends[0]);
  close(ends[1]);
  return weft::run([] { weft::chan<int>().recv(); });
}
