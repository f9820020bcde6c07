// While there is one P, locks of goroutines are taken by plain stores (runtime/lock.hpp: goroutine_lock), until a plain
// thread comes. The essay is in alone.cpp.
#pragma once

#include "runtime/lock.hpp"

namespace weft::rt {

enum class plain_threads : std::uint8_t { none, coming, came };
inline constinit atomic<plain_threads> plain_threads_seen{plain_threads::none};

WEFT_NOINLINE void plain_thread_comes() noexcept;

// By each thread that is not weft's, before it takes a goroutine_lock.
inline void note_plain_thread() noexcept {
  // acquire: who has come before us has waited for those that took locks plainly.
  if (WEFT_UNLIKELY(plain_threads_seen.load(acquire) != plain_threads::came)) plain_thread_comes();
}

// While the world is stopped, or nothing runs yet: there are so many Ps.
void begin_alone(std::uint32_t procs) noexcept;
// When it returns nobody takes a lock plainly any more. For who is about to take one himself.
void end_alone() noexcept;

}  // namespace weft::rt
