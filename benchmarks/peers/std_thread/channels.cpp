#include "benchmarks/peers/std_thread/queue.hpp"
#include "benchmarks/peers/std_thread/threads.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

void roundtrip(bench::job& j) {
  bench::queue<int> ping(1), pong(1);
  std::thread other([&] {
    while (auto v = ping.pop()) pong.push(*v);
  });
  j.measure(j.count(50'000), [&](std::size_t n) {
    int v = 0;
    for (std::size_t i = 0; i < n; ++i) {
      ping.push(v);
      v = *pong.pop();
    }
  });
  ping.close();
  other.join();
}

void through_buffer(bench::job& j, std::size_t pairs) {
  j.measure(j.count(400'000, pairs), [pairs](std::size_t n) {
    const std::size_t each = n / pairs;
    bench::queue<int> c(128);
    std::vector<std::thread> consumers;
    for (std::size_t p = 0; p < pairs; ++p) {
      consumers.emplace_back([&] {
        while (auto v = c.pop()) bench::keep(*v);
      });
    }
    bench::in_threads(pairs, [&] {
      for (std::size_t i = 0; i < each; ++i) c.push(1);
    });
    c.close();
    for (auto& t : consumers) t.join();
  });
}

const bench::workloads here{
    {"buffered_1_1", [](bench::job& j) { through_buffer(j, 1); }},
    {"buffered_8_8", [](bench::job& j) { through_buffer(j, 8); }},
    {"roundtrip", roundtrip},
    {"roundtrip_threads", roundtrip},
};

}  // namespace
