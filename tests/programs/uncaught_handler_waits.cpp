// The user's terminate handler may wait. Meanwhile other goroutines of the same thread call it as well.
#include <exception>
#include <stdexcept>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  std::set_terminate([] {
    static weft::mutex one_at_a_time;
    one_at_a_time.lock();
    weft::sleep(20ms);
    _exit(9);
  });
  return weft::run([] {
    weft::wait_group w;
    for (int i = 0; i < 20; ++i) w.go([] { throw std::runtime_error("handled"); });
    w.wait();
  });
}
