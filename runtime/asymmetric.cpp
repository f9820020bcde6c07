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
// Until the library's early functions have run, no thread other than this one uses it. So the change is safe.
WEFT_EARLY void choose_barriers() noexcept { barriers_are_symmetric = !membarrier_works(); }
}  // namespace

bool membarrier_works() noexcept {
  static const bool works = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return works;
}

void heavy_barrier() noexcept {
  full_fence();
  if (!membarrier_works()) return;
  const int saved = errno;  // perhaps a goroutine's
  // Once the process is registered, the call fails only for a temporary lack of memory, or because of a system call
  // filter that was installed since.
  while (::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
    if (errno != ENOMEM) {
      fatal("membarrier: {}: it worked when the program began, and must be allowed on", strerrordesc_np(errno));
    }
    ::sched_yield();
  }
  errno = saved;
}

}  // namespace weft::rt
