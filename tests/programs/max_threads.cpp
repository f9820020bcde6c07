// Every thread that weft may have is held: weft says so once, and the program goes on when a thread comes back.
#include <ctime>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  return weft::run(
      [] {
        weft::wait_group all;
        for (int i = 0; i < 12; ++i) {
          all.go([] {
            weft::blocking([] {
              timespec d{0, 300'000'000};
              ::nanosleep(&d, nullptr);
            });
          });
        }
        all.wait();
      },
      {.procs = 2, .max_threads = 3});
}
