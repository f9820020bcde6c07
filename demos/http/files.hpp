// Files below a folder, and never a file outside it. These are plain system calls that may wait for the disk: call them
// in weft::blocking().
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace demo::http {

// An open file; closed with the object.
class file {
 public:
  explicit file(int fd) noexcept : fd_(fd) {}
  file(file&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  file& operator=(file&&) = delete;
  ~file();

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  // Reads the next bytes; 0: the end. Throws std::system_error.
  std::size_t read(std::span<char> into);

 private:
  int fd_;
};

struct found_file {
  file content;
  std::uint64_t size;
  std::string_view type;  // "text/html; charset=utf-8"
};

class file_root {
 public:
  // Throws std::system_error if there is no such folder.
  explicit file_root(const std::filesystem::path& folder);

  // Opens the file that `path` ("/a/b.html") names; if that is a folder, its index.html. Nothing: there is no such
  // file, it is not a regular one, or it lies outside the folder, by ".." or by a symbolic link. Sets `ec` if it could
  // not find out, for example because no descriptors are left.
  std::optional<found_file> open(const std::string& path, std::error_code& ec) const;

 private:
  file folder_;
};

}  // namespace demo::http
