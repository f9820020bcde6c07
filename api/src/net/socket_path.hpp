// The name in the file system under which a unix listener is found.
#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>

namespace weft::net::detail {

// It goes with the listener, if it is still its own: another process may have removed it, and somebody made another
// file of that name. The working directory may change, so a relative name is kept with the one of now.
class socket_path {
 public:
  explicit socket_path(std::string_view path);

  void was_bound() noexcept;  // the name is there from now on
  void remove() noexcept;     // if it is there still, and its own

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t number_ = 0;  // 0: nothing is there
};

}  // namespace weft::net::detail
