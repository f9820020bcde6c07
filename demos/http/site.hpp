// What is at which path.
#pragma once

#include <optional>

#include "../support/server.hpp"
#include "files.hpp"
#include "request.hpp"
#include "response.hpp"

namespace demo::http {

class site {
 public:
  // With the files of `root` beside the built-in pages, if there is one.
  explicit site(std::optional<file_root> root) : root_(std::move(root)) {}

  void answer(const request& r, response_writer& out, const stop_stages& stop) const;

 private:
  void sleep(const request& r, response_writer& out, const stop_stages& stop) const;
  void send_file(const request& r, response_writer& out) const;

  std::optional<file_root> root_;
};

}  // namespace demo::http
