// The deadlock comes after timers, blocking calls, descriptors and threads were in use and are no more.
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
