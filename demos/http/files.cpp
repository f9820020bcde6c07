#include "files.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace demo::http {

namespace {

// The kernel walks the path and refuses each step that leaves the folder. So there is no race, and no spelling of a
// path that could be overlooked.
int open_beneath(int folder, const char* path) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // O_NONBLOCK: opening a fifo does not wait
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, folder, path, &how, sizeof how));
}

// True if a call failed because the system could not do it now, and not because of the path.
bool is_trouble(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO || error == EAGAIN;
}

std::string_view content_type(std::string_view path) {
  const std::size_t dot = path.find_last_of("./");
  const std::string_view ending = dot == std::string_view::npos ? "" : path.substr(dot);
  static constexpr std::pair<std::string_view, std::string_view> types[] = {
      {".html", "text/html; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".txt", "text/plain; charset=utf-8"},
      {".md", "text/plain; charset=utf-8"},
      {".json", "application/json"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".jpg", "image/jpeg"},
      {".gif", "image/gif"},
      {".webp", "image/webp"},
      {".ico", "image/x-icon"},
      {".pdf", "application/pdf"},
      {".wasm", "application/wasm"},
  };
  for (const auto& [known, type] : types) {
    if (ending == known) return type;
  }
  return "application/octet-stream";
}

}  // namespace

file::~file() {
  if (is_open()) ::close(fd_);
}

std::size_t file::read(std::span<char> into) {
  const ssize_t n = ::read(fd_, into.data(), into.size());
  if (n < 0) throw std::system_error(errno, std::system_category(), "read");
  return static_cast<std::size_t>(n);
}

file_root::file_root(const std::filesystem::path& folder)
    : folder_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  // The second condition tells whether the kernel has openat2 (5.6 or newer).
  if (!folder_.is_open() || !file(open_beneath(folder_.fd(), ".")).is_open()) {
    throw std::system_error(errno, std::system_category(), folder.string());
  }
}

std::optional<found_file> file_root::open(const std::string& path, std::error_code& ec) const {
  const std::size_t start = path.find_first_not_of('/');
  std::string relative = start == std::string::npos ? "." : path.substr(start);

  for (const char* below : {"", "/index.html"}) {
    relative += below;
    file found(open_beneath(folder_.fd(), relative.c_str()));
    struct stat info {};
    if (!found.is_open() || ::fstat(found.fd(), &info) != 0) {
      if (is_trouble(errno)) ec.assign(errno, std::system_category());
      break;
    }
    if (S_ISREG(info.st_mode)) {
      return found_file{std::move(found), static_cast<std::uint64_t>(info.st_size), content_type(relative)};
    }
    if (!S_ISDIR(info.st_mode)) break;
  }
  return std::nullopt;
}

}  // namespace demo::http
