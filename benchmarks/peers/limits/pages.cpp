// Touching a page of memory for the first time: the cost of a stack that is not reused. Each of 10^6 goroutines that
// are alive at once needs at least one page.
#include <sys/mman.h>

#include <stdexcept>

#include "benchmarks/support/bench.hpp"

namespace {

constexpr std::size_t page = 4096;

char* map_pages(std::size_t n) {
  void* p = mmap(nullptr, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::runtime_error("no address space");
  madvise(p, n * page, MADV_NOHUGEPAGE);
  return static_cast<char*>(p);
}

void touch(volatile char* pages, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) pages[i * page] = 1;
}

void wake_all(bench::job& j) {
  std::size_t n = j.count_in_memory(1'000'000, page);
  char* pages = map_pages(n);
  std::int64_t started = bench::now_ns();
  touch(pages, n);
  j.note("created_ns", static_cast<double>(bench::now_ns() - started) / static_cast<double>(n));
  j.note("bytes_per_parked", page);
}

const bench::workloads here{
    {"wake_all", wake_all},
};

}  // namespace
