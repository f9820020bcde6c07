// The same as deadlock_broken_pipe, for a dump that was asked for.
#include <csignal>
#include <cstdio>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  std::signal(SIGPIPE, SIG_DFL);
  int ends[2];
  if (pipe(ends) != 0) return 3;
  close(ends[0]);
  std::FILE* out = fdopen(ends[1], "w");
  if (!out) return 3;
  weft::run([out] {
    weft::dump_goroutines(out);
    for (int i = 0; i < 100; ++i) weft::go([] { weft::chan<int>().recv(); });
    weft::yield();
    weft::dump_goroutines(out);  // more than the stream's buffer holds
  });
  return 5;
}
