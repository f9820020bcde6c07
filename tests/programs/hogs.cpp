// WEFT_DEBUG=hogs names goroutines that hold their threads for long without announcing it.
#include <atomic>
#include <ctime>
#include <weft/weft.hpp>

namespace {
void sleep_in_the_kernel() {
  timespec d{0, 400'000'000};
  ::nanosleep(&d, nullptr);
}
}  // namespace

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::latch ended(3);
    std::atomic<bool> stop{false};
    weft::go({.name = "sleeper"}, [&] {
      sleep_in_the_kernel();
      ended.count_down();
    });
    weft::go({.name = "computer"}, [&] {
      while (!stop.load(std::memory_order_relaxed)) {}
      ended.count_down();
    });
    weft::go({.name = "honest"}, [&] {
      weft::blocking(sleep_in_the_kernel);
      ended.count_down();
    });
    weft::sleep(600ms);
    stop = true;
    ended.wait();
  });
}
