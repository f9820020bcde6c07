// An M sleeps in the poller until a timer is due. Then the timer is stopped, and nothing is left to wait for.
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::timer t{1h}, moved{1h};
    weft::blocking([] { ::usleep(30000); });  // meanwhile the P is handed on, and its new M waits for t
    moved.reset(30min);
    weft::sleep(5ms);
    t.stop();
    moved.stop();
    weft::chan<int>().recv();
  });
}
