// A page of memory touched for the first time: what a stack costs that is not reused. Each of 10^6 goroutines that are
// alive at once needs one at least.
#include <sys/mman.h>

#include <stdexcept>

#include "benchmarks/support/bench.hpp"

namespace {

constexpr std::size_t page = 4096;

void sleep_1m(bench::job& j) {
  std::size_t n = j.count_in_memory(1'000'000, page);
  void* p = mmap(nullptr, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::runtime_error("no address space");
  madvise(p, n * page, MADV_NOHUGEPAGE);
  j.measure_once(n, [=] {
    for (std::size_t i = 0; i < n; ++i) static_cast<volatile char*>(p)[i * page] = 1;
  });
}

const bench::workloads here{
    {"wake_all", [](bench::job& j) { j.note("bytes_per_parked", page); }},
    {"sleep_1m", sleep_1m},
};

}  // namespace
