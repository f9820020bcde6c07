// The deadlock comes after a sleep, a blocking call, a thread, a timer and set_procs; none of them can still help.
#include <thread>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::sleep(2ms);
    weft::blocking([] { ::usleep(1000); });
    weft::chan<int> c;
    std::thread t([=] { c.send(1); });
    c.recv();
    weft::blocking([&] { t.join(); });
    weft::timer stopped{1h};
    stopped.stop();
    weft::set_procs(4);
    weft::wait_group w;
    w.add(1);
    w.wait();
  });
}
