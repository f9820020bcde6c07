// Waiting for a descriptor that is ready only after the deadline. The test replaces the look at the descriptor, and
// delays the one that the call takes after the first.

#include "tests/support/catch.hpp"

#include <weft/io.hpp>
#include <weft/runtime.hpp>

#include <chrono>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

using namespace std::chrono_literals;

namespace {

using steady = std::chrono::steady_clock;

int looks = 0;
int fds[2];
steady::time_point deadline;

}  // namespace

// weft::net::sys::poll_once
extern "C" int __real__ZN4weft3net3sys9poll_onceEib(int fd, bool writable) noexcept;
extern "C" int __wrap__ZN4weft3net3sys9poll_onceEib(int fd, bool writable) noexcept {
  if (++looks == 2) {
    while (steady::now() <= deadline) ::usleep(1000);
    static_cast<void>(::write(fds[1], "x", 1));
  }
  return __real__ZN4weft3net3sys9poll_onceEib(fd, writable);
}

TEST_CASE("wait_readable: what is ready only after the deadline is too late") {
  weft::run([] {
    REQUIRE(::pipe2(fds, O_CLOEXEC) == 0);
    deadline = steady::now() + 100ms;
    CHECK(weft::io::wait_readable(fds[0], deadline) == std::errc::timed_out);
    CHECK(looks == 2);
    ::close(fds[0]);
    ::close(fds[1]);
  });
}
