// The name in the file system under which a unix listener is found.
#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>

namespace weft::net::detail {

// The file is removed when the listener closes, if it is still the listener's own: another process may have removed it,
// and somebody may have made another file of that name. In the child of a fork() it is the parent's. The working
// directory may change, so a relative name is completed with the present one.
class socket_path {
 public:
  explicit socket_path(std::string_view path);

  void was_bound() noexcept;  // the file exists from now on
  void remove() noexcept;     // if the file still exists and is the listener's own

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t number_ = 0;  // 0: no file was made
  pid_t maker_ = 0;
};

}  // namespace weft::net::detail
