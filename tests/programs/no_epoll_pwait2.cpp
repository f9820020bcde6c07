// Kernels before 5.11 do not have epoll_pwait2, so a blocked poll ends at whole milliseconds. Nothing may be early, and
// nothing late by more than a few milliseconds. Here a filter forbids the call.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>
#include <vector>
#include <weft/weft.hpp>

#include "tests/programs/support/forbid.hpp"

using namespace std::chrono_literals;
using clk = std::chrono::steady_clock;

namespace {

// The median: on a loaded machine some are later.
clk::duration median(std::vector<clk::duration>& d) {
  std::nth_element(d.begin(), d.begin() + static_cast<std::ptrdiff_t>(d.size() / 2), d.end());
  return d[d.size() / 2];
}

// Calls wait(until) again and again, for different times.
template <class F>
void measure(const char* what, F wait) {
  int early = 0;
  bool in_time = false;
  for (int attempt = 0; attempt < 5 && !in_time; ++attempt) {
    std::vector<clk::duration> lateness;
    for (int i = 0; i < 60; ++i) {
      auto until = clk::now() + std::chrono::microseconds(50 + i * 370 % 4000);
      wait(until);
      lateness.push_back(clk::now() - until);
      early += lateness.back() < 0ns;
    }
    in_time = median(lateness) < 4ms;
  }
  std::fprintf(stderr, "%s: early: %d, in time: %d\n", what, early, in_time);
}

}  // namespace

int main() {
  if (!forbid_system_call(SYS_epoll_pwait2, ENOSYS)) {
    std::perror("seccomp");
    return 1;
  }
  weft::run([] {
    measure("sleep", [](clk::time_point until) { weft::sleep_until(until); });
    int fds[2];
    if (::pipe(fds) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    std::error_code ec;
    measure("deadline", [&](clk::time_point until) { ec = weft::io::wait_readable(fds[0], until); });
    std::fprintf(stderr, "timed out: %d\n", ec == std::errc::timed_out);
    ::close(fds[0]);
    ::close(fds[1]);
    measure("after", [](clk::time_point until) { weft::after(until - clk::now()).recv(); });

    std::atomic<int> early{0};
    weft::wait_group w;
    for (int g = 0; g < 200; ++g) {
      w.go([&, g] {
        for (int i = 0; i < 20; ++i) {
          auto until = clk::now() + std::chrono::microseconds((g * 7 + i * 130) % 3000);
          weft::sleep_until(until);
          early += clk::now() < until;
        }
      });
    }
    w.wait();
    std::fprintf(stderr, "many: early: %d\n", early.load());
  });
  return 0;
}
