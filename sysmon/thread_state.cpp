#include "sysmon/thread_state.hpp"

#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace weft::rt {

bool thread_wants_processor(int tid) noexcept {
  char path[64];
  *fmt::format_to_n(path, sizeof path - 1, "/proc/self/task/{}/stat", tid).out = '\0';
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[256];
  ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (n <= 0) return false;
  text[n] = '\0';
  // "1234 (name with any bytes) R ...": the state follows the last parenthesis.
  const char* end_of_name = std::strrchr(text, ')');
  return end_of_name && end_of_name[1] == ' ' && end_of_name[2] == 'R';
}

}  // namespace weft::rt
