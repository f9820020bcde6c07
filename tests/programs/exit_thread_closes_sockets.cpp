// A plain thread calls exit(), which destroys a static socket that a goroutine waits in. The error that wakes it ends
// that goroutine without a report.
#include <cstdlib>
#include <thread>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

weft::net::tcp_listener listener;

int main() {
  return weft::run(
      [] {
        listener = weft::net::tcp_listener::bind("127.0.0.1:0");
        weft::go([] { listener.accept(); });
        while (weft::runtime_stats().waiting < 1) weft::sleep(1ms);
        std::thread([] { std::exit(4); }).detach();
        weft::sleep(1h);
        return 5;
      },
      {.shutdown_grace = 0ms});
}
