// Every goroutine sleeps, but something can wake one: there must be no report.
#include <csignal>
#include <thread>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  auto main = [] {
    weft::chan<int> c;
    weft::after(20ms).recv();  // a timer

    weft::go([=] {  // a blocking call
      weft::blocking([] { ::usleep(20000); });
      c.send(1);
    });
    c.recv();

    weft::go([=] {  // a blocking call that nobody announced
      ::usleep(20000);
      c.send(1);
    });
    c.recv();

    std::thread t([=] {  // a thread that weft does not know
      std::this_thread::sleep_for(20ms);
      c.send(1);
    });
    c.recv();
    t.join();

    int fds[2];  // a descriptor
    if (::pipe(fds) != 0) return 1;
    weft::go([=] {
      weft::sleep(1ms);
      std::thread([=] {
        std::this_thread::sleep_for(20ms);
        if (::write(fds[1], "x", 1) != 1) std::abort();
      }).detach();
    });
    if (weft::io::wait_readable(fds[0])) return 2;
    weft::sleep(5ms);

    weft::on_forced_tick([=] { (void)c.try_send(1); });
    c.recv();
    return 0;
  };
  return weft::run(main, {.force_tick_period = 20ms});
}
