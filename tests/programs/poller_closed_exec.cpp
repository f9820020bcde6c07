// Services close everything before exec(), to begin anew. They must get as far as exec().
#include <chrono>
#include <cstdio>
#include <unistd.h>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    for (int i = 0; i < 4; ++i) {
      weft::go([] {
        for (;;) weft::sleep(std::chrono::milliseconds(1));
      });
    }
    weft::sleep(std::chrono::milliseconds(5));
    for (int fd = 3; fd < 65536; ++fd) ::close(fd);
    ::usleep(20'000);
    ::execl("/bin/sh", "sh", "-c", "echo began anew >&2", static_cast<char*>(nullptr));
    std::perror("execl");
  });
}
