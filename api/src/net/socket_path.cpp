#include "api/src/net/socket_path.hpp"

#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace weft::net::detail {

socket_path::socket_path(std::string_view path) : path_(path) {
  if (path.starts_with('/')) return;
  std::error_code nowhere;  // set if the directory was removed: nothing can be bound there either
  const std::filesystem::path here = std::filesystem::current_path(nowhere);
  if (!nowhere) path_ = (here / path_).native();
}

void socket_path::was_bound() noexcept {
  struct stat is;
  if (::lstat(path_.c_str(), &is) != 0) return;
  device_ = is.st_dev;
  number_ = is.st_ino;
  maker_ = ::getpid();
}

void socket_path::remove() noexcept {
  struct stat is;
  if (number_ == 0 || maker_ != ::getpid() || ::lstat(path_.c_str(), &is) != 0) return;
  if (is.st_dev == device_ && is.st_ino == number_) ::unlink(path_.c_str());
}

}  // namespace weft::net::detail
