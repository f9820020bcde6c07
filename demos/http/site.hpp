// The site: which answer each path gets.
#pragma once

#include <optional>

#include "../support/server.hpp"
#include "files.hpp"
#include "request.hpp"
#include "response.hpp"

namespace demo::http {

class site {
 public:
  // Serves the built-in pages and, if there is a `root`, its files.
  explicit site(std::optional<file_root> root) : root_(std::move(root)) {}

  void answer(const request& r, response_writer& out, const stop_stages& stop) const;

 private:
  void sleep(const request& r, response_writer& out, const stop_stages& stop) const;
  void send_file(const request& r, response_writer& out) const;

  std::optional<file_root> root_;
};

}  // namespace demo::http
