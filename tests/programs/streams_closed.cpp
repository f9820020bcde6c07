// A program that begins without stdin, stdout and stderr opens its own in their places. weft must not have taken these
// numbers.
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

int main() {
  const int report = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return 1;
  for (int fd : {0, 1, 2}) ::close(fd);
  const char* wrong = nullptr;
  weft::run([&] {
    auto signals = weft::io::signal_channel({SIGUSR1});
    weft::go([&] { weft::io::wait_readable(ends[0]); });
    auto l = weft::net::tcp_listener::bind("127.0.0.1:0");
    auto client = weft::net::tcp_stream::connect(l.local_endpoint());
    auto server = l.accept();
    auto pair = weft::net::unix_stream::pair();
    weft::sleep(1ms);  // the goroutine waits
    for (int fd : {0, 1, 2}) {
      if (::open("/dev/null", O_RDWR) != fd) wrong = "weft has opened one of the first three descriptors";
    }
    weft::chan<int> c;
    std::thread wakes([=] {
      std::this_thread::sleep_for(5ms);
      c.send(1);
    });
    c.recv();
    wakes.join();
    ::raise(SIGUSR1);
    int number = 0;
    if (signals.recv_for(number, 5s) != weft::recv_result::value || number != SIGUSR1) wrong = "no signal came";
  });
  if (wrong) ::dprintf(report, "%s\n", wrong);
  return wrong ? 1 : 12;
}
