// Every goroutine: what it is, what it does and where (dump.cpp).
#pragma once

#include "runtime/report.hpp"
#include "sched/snapshot.hpp"

namespace weft::rt {

// Where the process ends.
void dump_goroutines(int fd, dump_of what, names n) noexcept;

// Of all goroutines, where the program goes on. Both by the same goroutine, or thread, inside the runtime.
class goroutine_dump {
 public:
  void take() noexcept;                  // while the world is stopped
  void write(int fd, names n) noexcept;  // once it goes on

 private:
  snapshot all_;
};

}  // namespace weft::rt
