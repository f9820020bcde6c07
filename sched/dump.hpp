// Dumps of all goroutines: what each is, what it does and where (dump.cpp).
#pragma once

#include "runtime/report.hpp"
#include "sched/snapshot.hpp"

namespace weft::rt {

// Writes a dump when the process is about to end.
void dump_goroutines(int fd, dump_of what, names n) noexcept;

// A dump of all goroutines in a program that goes on afterwards. The same goroutine or thread calls both functions,
// inside the runtime.
class goroutine_dump {
 public:
  void take() noexcept;                  // while the world is stopped
  void write(int fd, names n) noexcept;  // after the world was started again

 private:
  snapshot all_;
};

}  // namespace weft::rt
