// A program closes every descriptor that it does not know, as daemons do, and so the poller. weft must say so, and must
// not spin or hang.
#include <chrono>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::sleep(std::chrono::milliseconds(1));
    for (int fd = 3; fd < 100; ++fd) ::close(fd);
    weft::sleep(std::chrono::seconds(10));
  });
}
