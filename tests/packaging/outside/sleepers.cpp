// 100,000 goroutines sleep at once; none wakes early, and all are awake soon after.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

int main() {
  return weft::run([] {
    constexpr int count = 100'000;
    constexpr auto nap = 500ms;
    std::atomic<int> early = 0;
    auto begin = std::chrono::steady_clock::now();
    weft::wait_group all;
    for (int i = 0; i < count; ++i) {
      all.go([&early, nap] {
        auto slept_from = std::chrono::steady_clock::now();
        weft::sleep(nap);
        if (std::chrono::steady_clock::now() - slept_from < nap) ++early;
      });
    }
    all.wait();
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("sleepers: %d in %.2f s, %d woke early\n", count, took.count(), early.load());
    return early == 0 && took < 10s ? 0 : 1;  // one after the other they would take 14 hours
  });
}
