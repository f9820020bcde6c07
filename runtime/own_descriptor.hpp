// Descriptors that weft opens.
#pragma once

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace weft::rt {

// Returns `fd`, which was just opened, under a number beyond those of the standard streams: a program that began
// without one of these, or closed it, may open a file in its place later. Returns -1 with errno set if no such number
// can be had; fd is closed then. Returns a negative fd as it is.
inline int beyond_standard_streams(int fd) noexcept {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int other = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return other;
}

// While an object of this class lives, descriptors that other libraries open get numbers beyond those of the standard
// streams, too.
class standard_streams_taken {
 public:
  standard_streams_taken() noexcept {
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
      if (::fcntl(fd, F_GETFD) >= 0) continue;
      const int got = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      taken_[fd] = got == fd;
      if (got >= 0 && got != fd) ::close(got);  // another thread was faster
    }
  }
  ~standard_streams_taken() {
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
      if (taken_[fd]) ::close(fd);
    }
  }
  standard_streams_taken(const standard_streams_taken&) = delete;
  standard_streams_taken& operator=(const standard_streams_taken&) = delete;

 private:
  bool taken_[STDERR_FILENO + 1] = {};
};

}  // namespace weft::rt
