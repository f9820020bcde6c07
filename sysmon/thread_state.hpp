// What another thread of this process does, according to the kernel.
#pragma once

#include "sched/thread_use.hpp"

#include <cstddef>
#include <string_view>

namespace weft::rt {

// Takes some 10 µs. Unknown: it cannot be looked at, because there is no /proc, or no descriptor is left.
thread_does look_at_thread(int tid) noexcept;

// Returns the processor time that the thread has used so far; negative: it cannot be looked at.
nanos thread_time(int tid) noexcept;

// The same, but a thread that cannot be looked at is judged by what it uses, after a while. `use` is that thread's.
inline thread_does look_at_thread(int tid, thread_use& use, nanos now) noexcept {
  const thread_does what = look_at_thread(tid);
  return what == thread_does::unknown ? use.look(thread_time(tid), now) : what;
}

// Returns what the thread does: "computing", or its system call, such as "in clock_nanosleep". The text may be in
// `buffer`.
std::string_view describe_thread(int tid, char* buffer, std::size_t size) noexcept;

}  // namespace weft::rt
