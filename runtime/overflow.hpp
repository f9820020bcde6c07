// When a fault comes, recognises a goroutine that has overflowed its stack: its stack pointer is beyond the stack's
// end, or the fault's address lies in a guard page of ours.
#pragma once

#include <cstddef>
#include <sys/mman.h>

namespace weft::rt {

// Installs our SIGSEGV handler if it is not there. Our handler reports an overflow, or a stray access to a guard page,
// and ends the process. Any other fault goes to the handler that was there before; if that handler passes the fault
// back to ours, it goes to the one before that. Throws std::bad_alloc. Only one thread at a time may call this.
void install_overflow_handler();

// A thread's stack for signal handlers, since no handler can run on a stack that has overflowed. It is destroyed when
// the thread is gone.
class signal_stack {
 public:
  signal_stack() = default;
  ~signal_stack() {
    if (memory_) ::munmap(memory_, size);
  }
  signal_stack(const signal_stack&) = delete;
  signal_stack& operator=(const signal_stack&) = delete;

  [[nodiscard]] bool reserve() noexcept;  // false: there is no memory
  void use() const noexcept;              // for the calling thread, unless it has one (a sanitizer's)

 private:
  static constexpr std::size_t size = 256 * 1024;  // the program's handlers use it, too: some unwind, or write a report
  void* memory_ = nullptr;
};

}  // namespace weft::rt
