#include "benchmarks/peers/std_thread/sockets.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

void echo_on(bench::job& j, std::size_t connections) {
  bench::echo_connections all(connections);
  j.measure(j.count(50'000, connections), [&](std::size_t n) {
    std::vector<std::thread> clients;
    for (int fd : all.clients()) {
      clients.emplace_back([=] {
        for (std::size_t i = 0; i < n / connections; ++i) bench::echo(fd);
      });
    }
    for (auto& t : clients) t.join();
  });
}

const bench::workloads here{
    {"echo", [](bench::job& j) { echo_on(j, 1); }},
    {"echo_64", [](bench::job& j) { echo_on(j, 64); }},
};

}  // namespace
