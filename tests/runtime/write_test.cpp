// Writes what the runtime has to say (runtime/fatal.cpp) into pipes that are full. Also tests errno.

#include "runtime/fatal.hpp"
#include "runtime/thread.hpp"
#include "tests/support/catch.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <string>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;
namespace rt = weft::rt;

namespace {

struct pipe_pair {
  int ends[2];
  explicit pipe_pair(int flags) { REQUIRE(::pipe2(ends, flags) == 0); }
  ~pipe_pair() {
    for (int fd : ends) ::close(fd);
  }
  std::size_t read_all(std::size_t most) const {
    char part[4096];
    std::size_t all = 0;
    while (all < most) {
      ssize_t n = ::read(ends[0], part, sizeof part);
      if (n > 0) all += static_cast<std::size_t>(n);
      if (n < 0 && errno == EAGAIN) std::this_thread::sleep_for(1ms);
    }
    return all;
  }
};

const std::string text(1'000'000, 'x');

}  // namespace

TEST_CASE("write: a pipe that does not block and is full gets the rest when there is room") {
  pipe_pair p(O_NONBLOCK);
  std::size_t got = 0;
  std::thread reader([&] {
    std::this_thread::sleep_for(20ms);
    got = p.read_all(text.size());
  });
  rt::write_all(p.ends[1], text);
  reader.join();
  CHECK(got == text.size());
}

TEST_CASE("write: a pipe that does not block, and that nobody reads, is given up after a second") {
  pipe_pair p(O_NONBLOCK);
  const auto begin = std::chrono::steady_clock::now();
  rt::write_all(p.ends[1], text);
  CHECK(std::chrono::steady_clock::now() - begin >= 900ms);
}

TEST_CASE("write: who must not wait leaves out what a full pipe does not take") {
  pipe_pair p(0);
  rt::write_without_waiting(p.ends[1], text);  // a write that waits would block forever
  rt::write_without_waiting(p.ends[1], "more");
  CHECK(p.read_all(4096) == 4096);
  rt::write_without_waiting(p.ends[1], "last");
  REQUIRE(::fcntl(p.ends[0], F_SETFL, O_NONBLOCK) == 0);
  std::string rest;
  char part[4096];
  for (ssize_t n; (n = ::read(p.ends[0], part, sizeof part)) > 0;) rest.append(part, static_cast<std::size_t>(n));
  CHECK(rest.ends_with("xlast"));
}

TEST_CASE("errno_stays: errno is what it was before") {
  rt::set_errno(77);
  {
    rt::errno_stays keep;
    rt::set_errno(1);
  }
  CHECK(rt::get_errno() == 77);
}
