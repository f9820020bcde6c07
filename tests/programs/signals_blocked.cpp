// A signal that a parent has blocked stays blocked in the programs that it executes. A signal channel receives it
// nevertheless.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGUSR2);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  return weft::run([] {
    auto terminate = weft::io::signal_channel({SIGTERM});
    auto user = weft::io::signal_channel({SIGUSR1});  // the thread that feeds channels exists already
    ::kill(::getpid(), SIGUSR1);
    int number = 0;
    if (user.recv_for(number, 5s) != weft::recv_result::value || number != SIGUSR1) return 1;
    weft::io::stop_signals(user);
    weft::sleep(10ms);  // the thread has noticed, and reads
    auto later = weft::io::signal_channel({SIGUSR2});
    ::kill(::getpid(), SIGUSR2);
    if (later.recv_for(number, 5s) != weft::recv_result::value || number != SIGUSR2) return 2;
    weft::io::stop_signals(later);
    ::kill(::getpid(), SIGTERM);
    if (terminate.recv_for(number, 5s) != weft::recv_result::value || number != SIGTERM) return 3;
    weft::io::stop_signals(terminate);
    // The feeding thread of one channel ends while that of the next one begins.
    for (int i = 0; i < 2000; ++i) {
      weft::io::stop_signals(weft::io::signal_channel({SIGTERM}));
      auto next = weft::io::signal_channel({SIGUSR1});
      ::kill(::getpid(), SIGUSR1);
      if (next.recv_for(number, 5s) != weft::recv_result::value || number != SIGUSR1) return 4;
      weft::io::stop_signals(next);
    }
    std::fputs("received\n", stderr);
    return 0;
  });
}
