#include <csignal>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::chan<int> c;
    weft::go({.name = "receiver"}, [=] { c.recv(); });
    weft::sleep(2ms);
    ::kill(::getpid(), SIGQUIT);
    weft::sleep(1h);
  });
}
