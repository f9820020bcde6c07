// run() a thousand times: each starts afresh, and nothing grows.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unistd.h>
#include <weft/weft.hpp>

namespace {

std::size_t entries(const char* folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t n = 0;
  for (std::string line; std::getline(maps, line);) ++n;
  return n;
}

struct state {
  std::size_t threads, descriptors, maps;
  static state now() { return {entries("/proc/self/task"), entries("/proc/self/fd"), mappings()}; }
};

int sum_of(int n) {
  weft::chan<int> c{2};
  weft::wait_group senders;
  for (int i = 1; i <= n; ++i) {
    senders.go([=] {
      if (i % 4 == 0) weft::sleep(std::chrono::microseconds(10));
      c.send(i);
    });
  }
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += *c.recv();
  senders.wait();
  return sum;
}

}  // namespace

int main() {
  state first{};
  for (unsigned i = 0; i < 1000; ++i) {
    if (i == 100) first = state::now();
    int sum = weft::run([] { return sum_of(20); }, {.procs = 1 + i % 4});
    if (sum != 210) return 1;
    if (weft::num_goroutines() != 0 || weft::procs() != 0) return 2;
  }
  // Mappings come and go with malloc. But one more for every few runs, as for a stack left behind, would be too many.
  // Under ThreadSanitizer, a stack has mappings of its own, and many goroutines are about to end when run() does.
  state last = state::now();
#if defined(__SANITIZE_THREAD__)
  last.maps = first.maps;
#endif
  if (last.threads != first.threads || last.descriptors != first.descriptors || last.maps > first.maps + 100) {
    std::fprintf(stderr, "threads %zu -> %zu, descriptors %zu -> %zu, mappings %zu -> %zu\n", first.threads,
                 last.threads, first.descriptors, last.descriptors, first.maps, last.maps);
    return 3;
  }
  return 12;
}
