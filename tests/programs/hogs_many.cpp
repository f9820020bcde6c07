// Of many goroutines that hold their threads, a few are named, and the others are counted.
#include <ctime>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::wait_group all;
    for (int i = 0; i < 30; ++i) {
      all.go([] {
        timespec d{1, 500'000'000};
        ::nanosleep(&d, nullptr);
      });
    }
    all.wait();
    weft::sleep(1100ms);
  });
}
