#include <algorithm>
#include <latch>

#include "benchmarks/peers/std_thread/sockets.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

void echo_on(bench::job& j, std::size_t connections, std::size_t messages) {
  std::size_t before = bench::resident_bytes();
  bench::echo_connections all(connections);
  j.note("bytes_per_connection",
         static_cast<double>(bench::resident_bytes() - before) / static_cast<double>(connections));
  bench::samples times;
  j.measure(j.count(messages, connections), [&](std::size_t n) {
    const std::size_t each = std::max<std::size_t>(1, n / connections);
    std::vector<bench::samples> of(connections);
    std::vector<std::thread> clients;
    std::latch gate(1);
    std::int64_t start = 0;  // the same for all, so that the wait for a thread's first turn counts
    for (std::size_t c = 0; c < connections; ++c) {
      clients.emplace_back([&, c] {
        gate.wait();
        std::int64_t last = start;
        for (std::size_t i = 0; i < each; ++i) {
          bench::echo(all.clients()[c]);
          std::int64_t now = bench::now_ns();
          of[c].add(now - std::exchange(last, now));
        }
      });
    }
    start = bench::now_ns();
    gate.count_down();
    for (auto& t : clients) t.join();
    times = {};
    for (auto& s : of) times.add(s);
  });
  j.percentiles(times);
}

const bench::workloads here{
    {"echo", [](bench::job& j) { echo_on(j, 1, 50'000); }},
    {"echo_64", [](bench::job& j) { echo_on(j, 64, 50'000); }},
    {"echo_1k", [](bench::job& j) { echo_on(j, 1000, 100'000); }},
};

}  // namespace
