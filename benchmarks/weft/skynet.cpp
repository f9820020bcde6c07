// A tree of goroutines, ten children each, whose 10^6 leaves send their number up through channels.
#include <weft/chan.hpp>
#include <weft/go.hpp>

#include <cstdint>
#include <stdexcept>

#include "benchmarks/support/bench.hpp"

namespace {

void skynet(weft::chan<std::int64_t> up, std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) {
    up.send(first);
    return;
  }
  weft::chan<std::int64_t> c;
  for (int i = 0; i < 10; ++i) weft::go(skynet, c, first + i * (leaves / 10), leaves / 10);
  std::int64_t sum = 0;
  for (int i = 0; i < 10; ++i) sum += *c.recv();
  up.send(sum);
}

// One operation: a leaf. At lower scales the tree is smaller.
void tree(bench::job& j) {
  std::int64_t leaves = 10;
  while (static_cast<std::size_t>(leaves) * 10 <= j.count(1'000'000)) leaves *= 10;
  j.measure_once(leaves, [=] {
    weft::chan<std::int64_t> c;
    weft::go(skynet, c, 0, leaves);
    if (*c.recv() != leaves * (leaves - 1) / 2) throw std::runtime_error("wrong sum");
  });
}

const bench::workloads here{
    {"skynet", tree},
};

}  // namespace
