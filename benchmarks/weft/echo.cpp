// Loopback echo: one connection in turns (latency), and 64 at once (throughput). One operation: a message there and
// back.
#include <weft/sync.hpp>

#include "benchmarks/support/bench.hpp"
#include "benchmarks/weft/connections.hpp"

namespace {

void echo_on(bench::job& j, std::size_t connections) {
  auto server = bench::start_echo_server();
  std::vector<weft::net::tcp_stream> streams;
  for (std::size_t i = 0; i < connections; ++i) streams.push_back(weft::net::tcp_stream::connect(server));
  j.measure(j.count(50'000, connections), [&](std::size_t n) {
    weft::wait_group wg;
    for (auto& s : streams) {
      wg.go([&s, n, connections] {
        for (std::size_t i = 0; i < n / connections; ++i) bench::echo(s);
      });
    }
    wg.wait();
  });
}

const bench::workloads here{
    {"echo", [](bench::job& j) { echo_on(j, 1); }},
    {"echo_64", [](bench::job& j) { echo_on(j, 64); }},
};

}  // namespace
