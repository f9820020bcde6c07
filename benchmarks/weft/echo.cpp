// Loopback echo: one connection (latency), and many at once (throughput). One operation: a message there and back.
#include <weft/time.hpp>

#include "benchmarks/support/bench.hpp"
#include "benchmarks/weft/connections.hpp"

namespace {

using namespace std::chrono_literals;

void echo_on(bench::job& j, std::size_t connections, std::size_t messages) {
  std::size_t before = bench::resident_bytes();
  bench::streams all(bench::start_echo_server(), bench::job::connections(connections));
  weft::sleep(50ms);  // until all are accepted
  j.note("bytes_per_connection",
         static_cast<double>(bench::resident_bytes() - before) / static_cast<double>(all.size()));
  all.talk(j, messages, [](weft::net::tcp_stream& s) { bench::echo(s); });
}

const bench::workloads here{
    {"echo", [](bench::job& j) { echo_on(j, 1, 50'000); }},
    {"echo_64", [](bench::job& j) { echo_on(j, 64, 50'000); }},
    {"echo_1k", [](bench::job& j) { echo_on(j, 1000, 100'000); }},
    {"echo_10k", [](bench::job& j) { echo_on(j, 10'000, 200'000); }},
};

}  // namespace
