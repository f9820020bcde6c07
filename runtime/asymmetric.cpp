#include "runtime/asymmetric.hpp"

#include "runtime/fatal.hpp"

#include <cerrno>
#include <cstring>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::rt {

constinit bool barriers_are_symmetric = true;

namespace {
// Nobody else uses the library before its static constructors have run, or this thread does: so the change is safe.
[[maybe_unused]] const bool chosen = (barriers_are_symmetric = !membarrier_works());
}  // namespace

bool membarrier_works() noexcept {
  static const bool works = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return works;
}

void heavy_barrier() noexcept {
  full_fence();
  if (!membarrier_works()) return;
  const int saved = errno;  // of a goroutine, perhaps
  // Once registered, only a passing lack of memory can fail it, or a filter of system calls that was set since.
  while (::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
    if (errno != ENOMEM) {
      fatal("membarrier: {}: it worked when the program began, and must be allowed on", strerrordesc_np(errno));
    }
    ::sched_yield();
  }
  errno = saved;
}

}  // namespace weft::rt
