// Which pthread mutexes (std::mutex and std::recursive_mutex are such) the calling thread holds, for
// WEFT_DEBUG=hazard=1.
//
// Nobody keeps such a list, so the calls have to be seen. Every loaded file calls pthread_mutex_lock by an address that
// the dynamic linker has filled in; watch_mutexes() puts functions of ours there, in all files. So it costs nothing
// until it is asked for, it is the same for the static and the shared library, and no program has to be started or
// linked in another way for it. What it cannot see: a program that was linked with -static, and calls of a library that
// was loaded since the last watch_mutexes().
#pragma once

#include <cstddef>

namespace weft::rt {

struct held_lock {
  static constexpr std::size_t most_callers = 6;  // std::unique_lock's constructor calls lock(), and so on

  const void* mutex;
  // The address that the call returned to, and the next ones that the chain of frame pointers leads to, up to a null:
  // not callers, if the code was compiled without frame pointers. On a goroutine's stack only.
  const void* callers[most_callers];
  std::size_t depth;  // of a recursive one
};

// The outermost `most`: what is locked beside so many is not noted. Who holds more is no less in danger.
struct held_locks {
  static constexpr std::size_t most = 16;
  held_lock list[most];
  std::size_t size = 0;
};

// From now on. Again later: what was loaded meanwhile, too. Not under ThreadSanitizer, which has such functions itself.
void watch_mutexes() noexcept;

// The calling thread's list is handed over and is empty then, or gets more.
void take_held_locks(held_locks* out) noexcept;
void give_held_locks(const held_locks& locks) noexcept;

}  // namespace weft::rt
