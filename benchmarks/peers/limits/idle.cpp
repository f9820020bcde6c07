// How soon a thread that blocks in recv() goes on after another process has written.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

#include "benchmarks/support/bench.hpp"
#include "benchmarks/support/loopback.hpp"
#include "benchmarks/support/ticks.hpp"

namespace {

using bench::check;

void wake_idle(bench::job& j) {
  const int n = static_cast<int>(j.count(1000, 1000));
  sockaddr_in at;
  int listener = bench::listen_on_loopback(&at);
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
