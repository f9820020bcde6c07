// Barriers for protocols with a frequent side and a rare one (an asymmetric Dekker):
//
//     frequent                     rare
//     store x                      store y
//     light_barrier()              heavy_barrier()
//     load y                       load x
//
// At least one of the two loads sees the other side's store. The light barrier costs nothing: it only keeps the
// compiler from reordering. The heavy barrier is membarrier(2): the kernel interrupts every running thread of the
// process, and a thread that does not run had its barrier when it was switched out. Where the kernel has no membarrier,
// both are full fences.
#pragma once

#include "runtime/config.hpp"

#include <atomic>

namespace weft::rt {

// True if the kernel has no membarrier, and as long as the static constructors have not run yet.
extern bool barriers_are_symmetric;

inline void full_fence() noexcept {
#if defined(__x86_64__)
  asm volatile("lock orq $0, (%%rsp)" ::: "memory", "cc");
#elif defined(__aarch64__)
  asm volatile("dmb ish" ::: "memory");
#else
  __sync_synchronize();
#endif
}

inline void light_barrier() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (WEFT_UNLIKELY(barriers_are_symmetric)) full_fence();
}

WEFT_NOINLINE void heavy_barrier() noexcept;  // a system call

// True if the kernel has membarrier.
bool membarrier_works() noexcept;

}  // namespace weft::rt
