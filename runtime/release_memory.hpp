#pragma once

#include <cerrno>
#include <cstddef>
#include <sys/mman.h>

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

namespace weft::rt {

// Gives the memory of whole pages back to the system. They stay mapped, and are zero when they are next touched. The
// kernel refuses MADV_DONTNEED for what mlockall() has locked, and has the other since Linux 5.18; before that, the
// pages stay as they are. Changes errno.
inline void release_memory(void* at, std::size_t bytes) noexcept {
  if (::madvise(at, bytes, MADV_DONTNEED) != 0 && errno == EINVAL) ::madvise(at, bytes, MADV_DONTNEED_LOCKED);
}

}  // namespace weft::rt
