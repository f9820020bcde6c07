// A child process that sends the current time over loopback TCP once a millisecond. So something comes from outside
// while this process is idle. Both processes read the same clock.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace bench {

// Starts the child process, which connects to the port and sends bench::now_ns() `count` times.
class ticking {
 public:
  ticking(std::uint16_t port, int count);
  ~ticking();  // waits for the child's end
  ticking(const ticking&) = delete;

 private:
  pid_t child_ = 0;
};

// The main function of the child process.
void tick(std::uint16_t port, int count);

}  // namespace bench
