// No thread beyond the limit can be had, but the only one runs all that is ready: weft must say nothing.
#include <chrono>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  return weft::run(
      [] {
        weft::wait_group all;
        for (int i = 0; i < 20; ++i) {
          all.go([] {
            for (int k = 0; k < 10; ++k) {
              weft::sleep(3ms);
              weft::yield();
            }
          });
        }
        all.wait();
        weft::sleep(50ms);
      },
      {.procs = 2, .max_threads = 1});
}
