// A deadlock after a wait for a descriptor that its deadline or a close has ended. The thread that slept for the
// descriptor in the poller sleeps on, and must not keep the deadlock from being reported. Tried in many children, as
// two threads have to go to sleep at the same time.
#include <chrono>
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

namespace {

void compute(std::chrono::nanoseconds d) {
  for (auto end = std::chrono::steady_clock::now() + d; std::chrono::steady_clock::now() < end;) {}
}

void deadlock_after_io(int how) {
  std::error_code ec;
  auto [a, b] = weft::net::unix_stream::pair();
  char byte;
  if (how == 0) {
    weft::go([&] {
      compute(2ms);
      a.set_read_deadline(std::chrono::steady_clock::now());
    });
    a.read(std::span(&byte, 1), ec);
  } else if (how == 1) {
    a.set_read_deadline(std::chrono::steady_clock::now() + 3ms);
    a.read(std::span(&byte, 1), ec);
  } else {
    auto listener = weft::net::tcp_listener::bind("127.0.0.1:0");
    auto accepts = weft::spawn([&] { listener.accept(ec); });
    weft::yield();
    compute(2ms);
    listener.close();
    accepts.join();
  }
  weft::chan<int>().recv();
}

}  // namespace

int main() {
  int reported = 0;
  for (int i = 0; i < 30; ++i) {
    pid_t child = ::fork();
    if (child == 0) {
      ::alarm(10);
      if (!std::freopen("/dev/null", "w", stderr)) return 1;
      return weft::run([=] { deadlock_after_io(i % 3); }, {.procs = 2});
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    reported += WIFEXITED(status) && WEXITSTATUS(status) == 2;
  }
  std::fprintf(stderr, "%d of 30 reported\n", reported);
}
