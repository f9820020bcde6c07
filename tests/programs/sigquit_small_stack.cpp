// A dump on SIGQUIT when threads have small stacks by default, as after `ulimit -s 16`.
#include <csignal>
#include <pthread.h>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  pthread_attr_t attr;
  ::pthread_attr_init(&attr);
  ::pthread_attr_setstacksize(&attr, 16 * 1024);
  if (::pthread_setattr_default_np(&attr) != 0) return 1;
  return weft::run([] {
    weft::chan<int> c;
    weft::go({.name = "receiver"}, [=] { c.recv(); });
    weft::sleep(2ms);
    ::kill(::getpid(), SIGQUIT);
    weft::sleep(1h);
  });
}
