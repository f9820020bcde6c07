#include "runtime/thread.hpp"

#include "runtime/copies.hpp"
#include "runtime/exception_state.hpp"

#include <cerrno>

namespace weft::rt {

// thread.hpp uses this name in assembly, where link-time optimisation does not see it.
extern thread_local constinit thread_state* current __asm__("weft_current_thread")
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
__attribute__((used)) thread_local constinit thread_state* current = nullptr;

namespace {

// The assembly that reads `current` does not tell the compiler so. Hence the barrier: no store is put off beyond it.
void set_current(thread_state* ts) noexcept {
  current = ts;
  asm volatile("" ::: "memory");
}

// A foreign thread's state and G. They are destroyed with the thread: a G of this kind is reached only through waits of
// its own, and each of these is over when the thread leaves the call.
struct foreign_thread : thread_state {
  G own;
  foreign_thread() noexcept {
    refuse_beside_other_copy();  // the thread may run a goroutine of that copy
    own.kind = g_kind::foreign;
    own.state.store(g_state::running, relaxed);
    own.thread = this;
    g = &own;
    bind_to_this_thread();
  }
  ~foreign_thread() { set_current(nullptr); }
};

}  // namespace

void thread_state::bind_to_this_thread() noexcept {
  exceptions = exceptions_of_this_thread();
  errno_location = &errno;
}

#if !defined(WEFT_THREAD_BY_NAME)
thread_state* this_thread_or_null() noexcept { return current; }
#endif

thread_state* begin_foreign_thread() noexcept {
  static thread_local foreign_thread state;
  set_current(&state);
  return &state;
}

void set_this_thread(thread_state* ts) noexcept { set_current(ts); }

int get_errno() noexcept { return errno; }
void set_errno(int value) noexcept { errno = value; }

int start_thread(pthread_t* thread, void* (*f)(void*), void* arg) noexcept {
  constexpr std::size_t least = 256 * 1024;
  errno_stays keep;
  pthread_attr_t attr;
  if (int error = pthread_attr_init(&attr)) return error;
  std::size_t size;
  int error = pthread_attr_getstacksize(&attr, &size);
  if (error == 0 && size < least) error = pthread_attr_setstacksize(&attr, least);
  if (error == 0) error = pthread_create(thread, &attr, f, arg);
  pthread_attr_destroy(&attr);
  return error;
}

}  // namespace weft::rt
