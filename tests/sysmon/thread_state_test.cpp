// What the kernel tells of a thread (sysmon/thread_state.cpp), and what it does not.

#include "sysmon/thread_state.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/no_descriptors.hpp"

#include <atomic>
#include <thread>
#include <unistd.h>

using namespace weft::rt;

namespace {

std::string describe(int tid) {
  char buffer[64];
  return std::string(describe_thread(tid, buffer, sizeof buffer));
}

}  // namespace

TEST_CASE("thread_state: one that runs computes, one in a call sleeps") {
  CHECK(look_at_thread(::gettid()) == thread_does::compute);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::atomic<int> tid{0};
  std::thread reads([&] {
    tid = ::gettid();
    char c;
    while (::read(ends[0], &c, 1) < 0) {}
  });
  while (tid == 0 || look_at_thread(tid) != thread_does::sleep) std::this_thread::yield();
  const std::string what = describe(tid);
  CHECK((what == "in read" || what == "asleep in the kernel"));  // the second if the call may not be looked at
  {
    weft::test::no_descriptors none;
    CHECK(look_at_thread(tid) == thread_does::unknown);
    CHECK(describe(tid) == "computing or asleep in the kernel");
  }
  CHECK(::write(ends[1], "x", 1) == 1);
  reads.join();
  while (look_at_thread(tid) != thread_does::unknown) std::this_thread::yield();  // the thread ends a little later
  CHECK(look_at_thread(tid) == thread_does::unknown);
  for (int fd : ends) ::close(fd);
}
