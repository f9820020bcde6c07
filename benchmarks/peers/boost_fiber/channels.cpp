#include <boost/fiber/buffered_channel.hpp>
#include <boost/fiber/unbuffered_channel.hpp>

#include "benchmarks/peers/boost_fiber/fibers.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

void roundtrip(bench::job& j) {
  boost::fibers::unbuffered_channel<int> ping, pong;
  auto other = bench::start([&] {
    for (int v : ping) pong.push(v);
  });
  j.measure(j.count(1'000'000), [&](std::size_t n) {
    int v = 0;
    for (std::size_t i = 0; i < n; ++i) {
      ping.push(v);
      pong.pop(v);
    }
  });
  ping.close();
  other.join();
}

void through_buffer(bench::job& j, std::size_t pairs) {
  j.measure(j.count(2'000'000, pairs), [pairs](std::size_t n) {
    const std::size_t each = n / pairs;
    boost::fibers::buffered_channel<int> c(128);  // holds one value fewer than that
    std::vector<boost::fibers::fiber> producers, consumers;
    for (std::size_t p = 0; p < pairs; ++p) {
      producers.push_back(bench::start([&] {
        for (std::size_t i = 0; i < each; ++i) c.push(1);
      }));
      consumers.push_back(bench::start([&] {
        int v = 0;
        while (c.pop(v) == boost::fibers::channel_op_status::success) bench::keep(v);
      }));
    }
    for (auto& f : producers) f.join();
    c.close();
    for (auto& f : consumers) f.join();
  });
}

const bench::workloads here{
    {"buffered_1_1", [](bench::job& j) { through_buffer(j, 1); }},
    {"buffered_8_8", [](bench::job& j) { through_buffer(j, 8); }},
    {"roundtrip", roundtrip},
};

}  // namespace
