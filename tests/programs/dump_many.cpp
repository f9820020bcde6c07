// A dump of 100,000 goroutines is short, and does not take long.
#include <chrono>
#include <cstdio>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    constexpr int n = 100'000;
    weft::chan<int> c;
    for (int i = 0; i < n; ++i) weft::go([=] { c.recv(); });
    while (weft::runtime_stats().waiting < n) weft::sleep(10ms);
    auto start = std::chrono::steady_clock::now();
    weft::dump_goroutines(stderr);
    auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
    std::fprintf(stderr, "%lld ms, in time: %d\n", static_cast<long long>(ms), ms < 10'000);
  });
}
