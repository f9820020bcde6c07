#include "benchmarks/support/ticks.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "benchmarks/support/bench.hpp"

extern char** environ;

namespace bench {

ticking::ticking(std::uint16_t port, int count) {
  std::string words[] = {"ticks", "ticks", std::to_string(port), std::to_string(count)};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  if (posix_spawn(&child_, "/proc/self/exe", nullptr, nullptr, argv, environ) != 0) {
    throw std::runtime_error("no process for the ticks");
  }
}

ticking::~ticking() { waitpid(child_, nullptr, 0); }

void tick(std::uint16_t port, int count) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(port);
  int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  if (connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) < 0) return;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::int64_t now = now_ns();
    if (write(fd, &now, sizeof now) != sizeof now) return;
  }
}

}  // namespace bench
