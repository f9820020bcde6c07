// While a channel has SIGQUIT, there is no dump. When the channel is stopped, run() has the signal again.
#include <csignal>
#include <cstdio>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  auto c = weft::io::signal_channel({SIGQUIT});
  return weft::run([&] {
    weft::go({.name = "receiver"}, [] { weft::sleep(1h); });
    std::raise(SIGQUIT);
    c.recv();
    std::fputs("received\n", stderr);
    weft::io::stop_signals(c);
    std::raise(SIGQUIT);
    weft::sleep(1h);
  });
}
