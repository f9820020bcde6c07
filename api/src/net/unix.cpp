#include "api/src/net/address.hpp"
#include "api/src/net/descriptor.hpp"
#include "api/src/net/syscalls.hpp"
#include "sched/lifecycle.hpp"
#include "weft/context.hpp"

#include <memory>

namespace weft::net {

using detail::descriptor;

namespace {

descriptor* dial_path(std::string_view path, rt::nanos deadline, const context& ctx, std::error_code& ec) {
  ec.clear();
  if (std::optional<endpoint> to = unix_endpoint(path)) return detail::dial(SOCK_STREAM, *to, deadline, ctx, ec);
  ec = system_error_code(EINVAL);
  return nullptr;
}

}  // namespace

unix_stream unix_stream::connect(std::string_view path, weft::detail::any_point deadline, std::error_code& ec) {
  return unix_stream(dial_path(path, deadline.ns(), background(), ec));
}

unix_stream unix_stream::connect(std::string_view path, const context& ctx, std::error_code& ec) {
  return unix_stream(dial_path(path, rt::forever, ctx, ec));
}

unix_stream unix_stream::connect(std::string_view path, const context& ctx) {
  return checked("weft: connect", path, [&](std::error_code& ec) { return connect(path, ctx, ec); });
}

unix_stream unix_stream::connect(std::string_view path, weft::detail::any_point deadline) {
  return checked("weft: connect", path, [&](std::error_code& ec) { return connect(path, deadline, ec); });
}

std::pair<unix_stream, unix_stream> unix_stream::pair(std::error_code& ec) {
  rt::throw_if_not_running("a socket");
  ec.clear();
  int fds[2];
  if (int n = sys::make_pair(fds); n < 0) {
    ec = system_error_code(-n);
    return {};
  }
  unix_stream a, b;
  try {
    a = unix_stream(descriptor::make_or_close(fds[0], ec));
  } catch (...) {
    sys::close(fds[1]);
    throw;
  }
  if (ec) {
    sys::close(fds[1]);
  } else {
    b = unix_stream(descriptor::make_or_close(fds[1], ec));
  }
  if (ec) return {};
  return {std::move(a), std::move(b)};
}

std::pair<unix_stream, unix_stream> unix_stream::pair() {
  return checked("weft: socketpair", "", [&](std::error_code& ec) { return pair(ec); });
}

unix_stream unix_stream::adopt(int fd, std::error_code& ec) {
  return unix_stream(detail::adopt_socket(detail::socket_kind::unix_stream, fd, ec));
}

unix_stream unix_stream::adopt(int fd) {
  return checked("weft: adopt descriptor", std::to_string(fd), [&](std::error_code& ec) { return adopt(fd, ec); });
}

unix_listener unix_listener::bind(std::string_view path, const listen_options& o, std::error_code& ec) {
  ec.clear();
  std::optional<endpoint> at = unix_endpoint(path);
  if (!at) {
    ec = system_error_code(EINVAL);
    return {};
  }
  auto to_remove = path.front() == '@' ? nullptr : std::make_unique<detail::socket_path>(path);
  return unix_listener(detail::bind_socket(SOCK_STREAM, *at, o, std::move(to_remove), ec));
}

unix_listener unix_listener::bind(std::string_view path, const listen_options& o) {
  return checked("weft: bind", path, [&](std::error_code& ec) { return bind(path, o, ec); });
}

unix_listener unix_listener::adopt(int fd, std::error_code& ec) {
  return unix_listener(detail::adopt_socket(detail::socket_kind::unix_listener, fd, ec));
}

unix_listener unix_listener::adopt(int fd) {
  return checked("weft: adopt descriptor", std::to_string(fd), [&](std::error_code& ec) { return adopt(fd, ec); });
}

namespace {

descriptor* accept_unix(descriptor* l, std::error_code& ec, message_address* where) {
  sockaddr_storage from;
  socklen_t size;
  bool plain;
  int fd = detail::accept_descriptor(l, &from, &size, &plain, ec, where);
  return fd < 0 ? nullptr : descriptor::make_or_close(fd, ec);
}

}  // namespace

unix_stream unix_listener::accept(std::error_code& ec) { return unix_stream(accept_unix(d_, ec, nullptr)); }

unix_stream unix_listener::accept() {
  return checked("weft: accept",
                 [&](std::error_code& ec, message_address* where) { return unix_stream(accept_unix(d_, ec, where)); });
}

}  // namespace weft::net
