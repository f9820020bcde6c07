#include "api/src/net/address.hpp"
#include "api/src/net/descriptor.hpp"
#include "api/src/net/syscalls.hpp"
#include "api/src/support.hpp"
#include "sched/lifecycle.hpp"
#include "weft/context.hpp"

#include <algorithm>
#include <netinet/tcp.h>

namespace weft::net {

using detail::descriptor;

namespace {

int set_nodelay_on(int fd, bool on) noexcept { return sys::set_option(fd, IPPROTO_TCP, TCP_NODELAY, on); }

// Returns the deadline for the next of several addresses. None of them may use up all the time that is left, but each
// gets a third of a second, in which most connections are established, if there is that much.
rt::nanos share_of(rt::nanos deadline, std::size_t addresses_left) noexcept {
  if (deadline == rt::forever) return deadline;
  rt::nanos left = time_until(deadline);
  if (left <= 0) return deadline;
  return deadline - left + std::min(left, std::max(left / static_cast<rt::nanos>(addresses_left), rt::second / 3));
}

// True if this error only says that this machine has no use for the address, so that another one is worth a try.
bool is_of_the_address(const std::error_code& ec) noexcept {
  return ec == std::errc::address_not_available || ec == std::errc::address_family_not_supported ||
         ec == std::errc::network_unreachable || ec == std::errc::no_such_device;
}

descriptor* connect_to(const endpoint& to, rt::nanos deadline, const context& ctx, std::error_code& ec) {
  if (!is_ip(to)) {
    ec = system_error_code(EINVAL);
    return nullptr;
  }
  descriptor* d = detail::dial(SOCK_STREAM, to, deadline, ctx, ec);
  if (d) {
    set_nodelay_on(d->fd, true);
    d->plain.store(true, rt::relaxed);
  }
  return d;
}

descriptor* connect_to(std::string_view address, rt::nanos deadline, const context& ctx, std::error_code& ec) {
  rt::throw_if_not_running("a socket");
  ec.clear();
  std::vector<endpoint> all = resolve_address(address, purpose::connect, transport::tcp, deadline, ctx, ec);
  rt::nanos last = deadline;  // when the time is up that the addresses share
  if (auto at = ctx.deadline()) last = std::min(last, weft::detail::any_point(*at).ns());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const rt::nanos until = i + 1 < all.size() ? share_of(last, all.size() - i) : deadline;
    const std::error_code before = ec;
    if (descriptor* d = connect_to(all[i], until, ctx, ec)) return d;
    if (before && is_of_the_address(ec)) ec = before;
    if (ctx.err() || ec == std::errc::operation_canceled) break;  // operation_canceled: run() is over
  }
  return nullptr;
}

}  // namespace

// --- tcp_stream

tcp_stream tcp_stream::connect_by(std::string_view address, std::int64_t deadline_ns, std::error_code& ec) {
  return tcp_stream(connect_to(address, deadline_ns, background(), ec));
}

tcp_stream tcp_stream::connect_by(std::string_view address, std::int64_t deadline_ns) {
  return checked("weft: connect", address, [&](std::error_code& ec) { return connect_by(address, deadline_ns, ec); });
}

tcp_stream tcp_stream::connect(std::string_view address, const context& ctx, std::error_code& ec) {
  return tcp_stream(connect_to(address, rt::forever, ctx, ec));
}

tcp_stream tcp_stream::connect(std::string_view address, const context& ctx) {
  return checked("weft: connect", address, [&](std::error_code& ec) { return connect(address, ctx, ec); });
}

tcp_stream tcp_stream::connect(const endpoint& to, weft::detail::any_point deadline, std::error_code& ec) {
  rt::throw_if_not_running("a socket");
  ec.clear();
  return tcp_stream(connect_to(to, deadline.ns(), background(), ec));
}

tcp_stream tcp_stream::connect(const endpoint& to, weft::detail::any_point deadline) {
  return checked("weft: connect", to, [&](std::error_code& ec) { return connect(to, deadline, ec); });
}

tcp_stream tcp_stream::connect(const endpoint& to, const context& ctx, std::error_code& ec) {
  rt::throw_if_not_running("a socket");
  ec.clear();
  return tcp_stream(connect_to(to, rt::forever, ctx, ec));
}

tcp_stream tcp_stream::connect(const endpoint& to, const context& ctx) {
  return checked("weft: connect", to, [&](std::error_code& ec) { return connect(to, ctx, ec); });
}

tcp_stream tcp_stream::adopt(int fd, std::error_code& ec) {
  return tcp_stream(detail::adopt_socket(detail::socket_kind::tcp_stream, fd, ec));
}

tcp_stream tcp_stream::adopt(int fd) {
  return checked("weft: adopt descriptor", std::to_string(fd), [&](std::error_code& ec) { return adopt(fd, ec); });
}

void tcp_stream::set_nodelay(bool on, std::error_code& ec) {
  detail::use u(d_, ec);
  if (!u) return;
  if (int n = set_nodelay_on(d_->fd, on); n < 0) ec = system_error_code(-n);
}

void tcp_stream::set_nodelay(bool on) {
  std::error_code ec;
  set_nodelay(on, ec);
  throw_if(ec, "weft: set nodelay", "");
}

// --- tcp_listener

tcp_listener tcp_listener::bind(const endpoint& at, const listen_options& o, std::error_code& ec) {
  ec.clear();
  if (!is_ip(at)) {
    ec = system_error_code(EINVAL);
    return {};
  }
  descriptor* d = detail::bind_socket(SOCK_STREAM, at, o, nullptr, ec);
  if (d) d->plain.store(true, rt::relaxed);
  return tcp_listener(d);
}

tcp_listener tcp_listener::bind(const endpoint& at, const listen_options& o) {
  return checked("weft: bind", at, [&](std::error_code& ec) { return bind(at, o, ec); });
}

tcp_listener tcp_listener::bind(std::string_view address, const listen_options& o, std::error_code& ec) {
  rt::throw_if_not_running("a socket");
  ec.clear();
  for (const endpoint& at : resolve_address(address, purpose::bind, transport::tcp, rt::forever, background(), ec)) {
    tcp_listener l = bind(at, o, ec);
    if (!ec || !is_of_the_address(ec)) return l;
  }
  return {};
}

tcp_listener tcp_listener::bind(std::string_view address, const listen_options& o) {
  return checked("weft: bind", address, [&](std::error_code& ec) { return bind(address, o, ec); });
}

tcp_listener tcp_listener::adopt(int fd, std::error_code& ec) {
  return tcp_listener(detail::adopt_socket(detail::socket_kind::tcp_listener, fd, ec));
}

tcp_listener tcp_listener::adopt(int fd) {
  return checked("weft: adopt descriptor", std::to_string(fd), [&](std::error_code& ec) { return adopt(fd, ec); });
}

namespace {

descriptor* accept_one(descriptor* l, std::error_code& ec, message_address* where) {
  sockaddr_storage from;
  socklen_t size;
  bool plain;
  int fd = detail::accept_descriptor(l, &from, &size, &plain, ec, where);
  if (fd < 0) return nullptr;
  set_nodelay_on(fd, true);
  descriptor* d = descriptor::make_or_close(fd, ec);
  if (d) {
    d->where = to_address(endpoint::from_native(&from, size));
    d->plain.store(plain, rt::relaxed);
  }
  return d;
}

}  // namespace

tcp_stream tcp_listener::accept(std::error_code& ec) { return tcp_stream(accept_one(d_, ec, nullptr)); }

tcp_stream tcp_listener::accept() {
  return checked("weft: accept",
                 [&](std::error_code& ec, message_address* where) { return tcp_stream(accept_one(d_, ec, where)); });
}

}  // namespace weft::net
