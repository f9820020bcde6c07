// The child of a fork() has none of the threads that a run() of its parent left behind, and must notice its own
// deadlock.
#include <chrono>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

int main() {
  weft::run(
      [] {
        weft::go([] {
          for (auto end = std::chrono::steady_clock::now() + 100ms; std::chrono::steady_clock::now() < end;) {}
        });
        weft::sleep(5ms);
      },
      {.shutdown_grace = 1ms});
  ::usleep(200000);
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    return weft::run([] { weft::chan<int>().recv(); });
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}
