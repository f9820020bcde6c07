#include <boost/fiber/buffered_channel.hpp>

#include <cstdint>
#include <stdexcept>

#include "benchmarks/peers/boost_fiber/fibers.hpp"
#include "benchmarks/support/bench.hpp"

namespace {

using channel = boost::fibers::buffered_channel<std::int64_t>;

void skynet(channel& up, std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) {
    up.push(first);
    return;
  }
  channel c{16};
  std::vector<boost::fibers::fiber> children;
  for (int i = 0; i < 10; ++i) {
    children.push_back(bench::start_small([&c, first, leaves, i] { skynet(c, first + i * (leaves / 10), leaves / 10); },
                                          boost::fibers::launch::dispatch));
  }
  std::int64_t sum = 0;
  for (int i = 0; i < 10; ++i) sum += c.value_pop();
  for (auto& f : children) f.join();
  up.push(sum);
}

// The tree is a tenth of the other peers': the whole one takes too much memory on one thread.
void tree(bench::job& j) {
  std::int64_t leaves = 10;
  while (static_cast<std::size_t>(leaves) * 10 <= j.count(100'000)) leaves *= 10;
  j.measure_once(leaves, [=] {
    channel c{16};
    auto top = bench::start_small([&] { skynet(c, 0, leaves); });
    if (c.value_pop() != leaves * (leaves - 1) / 2) throw std::runtime_error("wrong sum");
    top.join();
  });
}

const bench::workloads here{
    {"skynet", tree},
};

}  // namespace
