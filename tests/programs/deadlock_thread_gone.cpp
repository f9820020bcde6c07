// Every goroutine sleeps. A thread that weft did not start could wake one, but it ends without doing so.
#include <thread>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::chan<int> c;
    std::thread([] { std::this_thread::sleep_for(100ms); }).detach();
    c.recv();
  });
}
