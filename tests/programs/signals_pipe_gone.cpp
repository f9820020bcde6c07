// A program that closes all descriptors closes the pipe of the signal channels, too. weft must say so, and must not use
// up the processor.
#include <chrono>
#include <csignal>
#include <ctime>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  auto c = weft::io::signal_channel({SIGUSR1});
  for (int fd = 3; fd < 100; ++fd) ::close(fd);
  ::raise(SIGUSR1);
  ::usleep(300'000);
  return std::clock() < CLOCKS_PER_SEC / 5 ? 0 : 1;
}
