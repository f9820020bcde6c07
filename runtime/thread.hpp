// What the runtime keeps for each thread. The thread-locals of weft live behind the functions of this file, except for
// a few that no goroutine uses while it is suspended.
//
// A compiler may keep the address of a thread-local in a register across a call, and a goroutine may come back
// from that call on another thread. Therefore nobody takes the address of one of these outside thread.cpp: the
// accessors are assembly, or functions that are never inlined, and what they return is used up before the next
// suspension.
//
// The exceptions:
//   fatal.cpp             whether this thread reports: it never leaves that function, and the process ends
//   lock.cpp              the ranks it holds, in checked builds: also behind a function that is never inlined
//   overflow.cpp          the fault it handles: a signal handler is never suspended
//   uncaught.cpp          whether this thread has its report, and whether it terminates: it does not come back
//   select_workspace.hpp  random numbers for threads that run no goroutine: their code stays on its thread
//   process_exit.cpp      its destructor tells that exit() has begun; nobody else touches it
#pragma once

#include "runtime/config.hpp"
#include "runtime/g.hpp"

#include <pthread.h>

namespace weft::rt {

struct thread_state {
  G* g = nullptr;                         // what runs on this thread now
  exception_state* exceptions = nullptr;  // this thread's __cxa_get_globals()
  int* errno_location = nullptr;
  bool worker = false;  // an M of the scheduler; else a foreign thread
  bool is_sysmon = false;
  const G* scheduler = nullptr;  // the M's own stack; null: a foreign thread

  // Fills in what belongs to the calling thread.
  void bind_to_this_thread() noexcept;
};

// The state of the calling thread, or null if it is a foreign thread that never waited.
#if defined(__x86_64__) && !defined(WEFT_INTERLEAVE)
#define WEFT_THREAD_BY_NAME 1
// Reads it by its name, in assembly, without a call. The compiler sees no address that it could keep, and runs the
// assembly each time, because it is volatile.
inline thread_state* this_thread_or_null() noexcept {
  thread_state* ts;
  asm volatile("mov weft_current_thread@gottpoff(%%rip), %0\n\tmov %%fs:(%0), %0" : "=r"(ts));
  return ts;
}
#else
WEFT_NOINLINE thread_state* this_thread_or_null() noexcept;
#endif

// The state of the calling thread; a foreign thread gets one, with a G of its own, on first use.
WEFT_NOINLINE thread_state* begin_foreign_thread() noexcept;
inline thread_state* this_thread() noexcept {
  thread_state* ts = this_thread_or_null();
  return WEFT_LIKELY(ts != nullptr) ? ts : begin_foreign_thread();
}

void set_this_thread(thread_state* ts) noexcept;

// The calling thread's errno, never cached across a suspension.
WEFT_NOINLINE int get_errno() noexcept;
WEFT_NOINLINE void set_errno(int value) noexcept;

// Keeps a goroutine's errno across system calls that the runtime makes while it switches, or for others. The thread
// must remain the same meanwhile.
class errno_stays {
 public:
  errno_stays() noexcept : before_(get_errno()) {}
  ~errno_stays() { set_errno(before_); }
  errno_stays(const errno_stays&) = delete;
  errno_stays& operator=(const errno_stays&) = delete;

 private:
  const int before_;
};

// pthread_create, with a stack that is large enough for weft's own work, whatever `ulimit -s` says.
int start_thread(pthread_t* thread, void* (*f)(void*), void* arg) noexcept;

}  // namespace weft::rt
