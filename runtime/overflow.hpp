// Recognises a goroutine that ran over its stack, when a fault comes: its stack pointer is beyond the stack's end, or
// the fault's address lies in a guard page of ours.
#pragma once

#include <cstddef>
#include <sys/mman.h>

namespace weft::rt {

// Installs the SIGSEGV handler, if it is not there. Faults that are not a goroutine's overflow go to the handler that
// was there before; if that one passes them back to ours, to what was there before it. std::bad_alloc. One thread at a
// time.
void install_overflow_handler();

// A thread's stack for signals: on a stack that ran over no handler can run. Destroyed when the thread is gone.
class signal_stack {
 public:
  signal_stack() = default;
  ~signal_stack() {
    if (memory_) ::munmap(memory_, size);
  }
  signal_stack(const signal_stack&) = delete;
  signal_stack& operator=(const signal_stack&) = delete;

  [[nodiscard]] bool reserve() noexcept;  // false: there is no memory
  void use() const noexcept;              // by the calling thread, unless it has one (a sanitizer's)

 private:
  static constexpr std::size_t size = 64 * 1024;
  void* memory_ = nullptr;
};

}  // namespace weft::rt
