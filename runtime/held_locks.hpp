// Tells which pthread mutexes (std::mutex and std::recursive_mutex are such) the calling thread holds, for
// WEFT_DEBUG=hazard=1.
//
// Nobody else keeps such a list, so the calls have to be intercepted. Every loaded file calls pthread_mutex_lock by an
// address that the dynamic linker has filled in; watch_mutexes() puts functions of ours there, in all files. So
// watching costs nothing until it is asked for, it is the same for the static and the shared library, and no program
// has to be started or linked in another way for it. It does not see the calls of a program that was linked with
// -static, nor those of a library that was loaded since the last watch_mutexes().
#pragma once

#include <cstddef>

namespace weft::rt {

struct held_lock {
  static constexpr std::size_t most_callers = 6;  // std::unique_lock's constructor calls lock(), and so on

  const void* mutex;
  // The return address of the call, and the next ones that the chain of frame pointers leads to, up to a null. These
  // next ones are noted on a goroutine's stack only. They are not callers if the code was compiled without frame
  // pointers.
  const void* callers[most_callers];
  std::size_t depth;  // how often it is held, for a recursive one
};

// The outermost `most` locks. What is locked beyond them is not noted, since a thread that holds more is in no less
// danger.
struct held_locks {
  static constexpr std::size_t most = 16;
  held_lock list[most];
  std::size_t size = 0;
};

// Starts to watch. If it is called again, also watches the files that were loaded meanwhile. Does nothing under
// ThreadSanitizer, which intercepts these functions itself.
void watch_mutexes() noexcept;

// take_held_locks moves the calling thread's list to *out, and leaves it empty. give_held_locks adds `locks` to it.
void take_held_locks(held_locks* out) noexcept;
void give_held_locks(const held_locks& locks) noexcept;

}  // namespace weft::rt
