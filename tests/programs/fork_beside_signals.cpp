// fork() after a run(), while the thread that feeds a signal channel is at work: the child must not find a lock that
// this thread held.
#include <chrono>
#include <csignal>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

namespace {

int childs_life(const weft::chan<int>& inherited) {
  ::alarm(20);  // ends a child that hangs
  return weft::run([&] {
    auto signals = weft::io::signal_channel({SIGUSR1});
    ::kill(::getpid(), SIGUSR1);
    int number = 0;
    if (signals.recv_for(number, 10s) != weft::recv_result::value) return 1;
    while (inherited.try_recv(number) == weft::recv_result::value) {}
    return inherited.try_send(1) ? 0 : 2;
  });
}

}  // namespace

int main() {
  std::optional<weft::chan<int>> inherited;
  weft::run([&] { inherited = weft::io::signal_channel({SIGUSR1}); });
  for (int i = 0; i < 1000; ++i) {
    int number;
    while (inherited->try_recv(number) == weft::recv_result::value) {}
    for (int n = 0; n < 10; ++n) ::kill(::getpid(), SIGUSR1);
    pid_t child = ::fork();
    if (child == 0) _exit(childs_life(*inherited));
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) return 1;
  }
  return 7;
}
