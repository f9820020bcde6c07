// A process that sends what time it is, once a millisecond, by loopback TCP: something that comes from outside while
// nothing goes on here. The clock is the same in both.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace bench {

// Starts it, as a child of this process; it connects to the port and sends that many times bench::now_ns().
class ticking {
 public:
  ticking(std::uint16_t port, int count);
  ~ticking();  // waits for its end
  ticking(const ticking&) = delete;

 private:
  pid_t child_ = 0;
};

// What the child does.
void tick(std::uint16_t port, int count);

}  // namespace bench
