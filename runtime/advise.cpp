#include "runtime/advise.hpp"

#include "runtime/atomic.hpp"
#include "runtime/sanitizer.hpp"
#include "runtime/stack_guard.hpp"

#include <cerrno>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

namespace weft::rt {

std::size_t advise_each(std::byte* const* pages, std::size_t n, int advice) noexcept {
  constexpr int this_thread = -10000;  // PIDFD_SELF_THREAD
  static constinit atomic<bool> unknown{false};
  if (under_valgrind || unknown.load(relaxed)) return 0;
  iovec ranges[most_advised_at_once];
  for (std::size_t i = 0; i < n; ++i) ranges[i] = {pages[i], page};
  long bytes = ::syscall(SYS_process_madvise, this_thread, ranges, n, advice, 0);
  if (bytes > 0) return static_cast<std::size_t>(bytes) / page;
  if (bytes < 0 && errno != ENOMEM && errno != EINTR) unknown.store(true, relaxed);
  return 0;
}

}  // namespace weft::rt
