// How soon a thread that blocks in read() goes on when another process has written.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

#include "benchmarks/support/bench.hpp"
#include "benchmarks/support/ticks.hpp"

namespace {

int check(int result) {
  if (result < 0) throw std::runtime_error("a system call failed");
  return result;
}

void wake_idle(bench::job& j) {
  const int n = static_cast<int>(j.count(1000, 100));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  int listener = check(socket(AF_INET, SOCK_STREAM, 0));
  check(bind(listener, reinterpret_cast<sockaddr*>(&at), size));
  check(listen(listener, 1));
  check(getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size));
  bench::ticking other(ntohs(at.sin_port), n);
  int fd = check(accept(listener, nullptr, nullptr));
  bench::samples late;
  for (int i = 0; i < n; ++i) {
    std::int64_t sent = 0;
    if (recv(fd, &sent, sizeof sent, MSG_WAITALL) != sizeof sent) throw std::runtime_error("a tick is cut");
    late.add(bench::now_ns() - sent);
  }
  close(fd);
  close(listener);
  j.report(late);
}

const bench::workloads here{
    {"wake_idle", wake_idle},
};

}  // namespace
