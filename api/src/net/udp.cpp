#include "api/src/net/address.hpp"
#include "api/src/net/descriptor.hpp"
#include "api/src/net/syscalls.hpp"
#include "sched/lifecycle.hpp"
#include "weft/context.hpp"

namespace weft::net {

using detail::descriptor;

namespace {

struct datagram {
  datagram(const void* data, std::size_t size) noexcept : part{const_cast<void*>(data), size} {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
  }
  iovec part;
  sockaddr_storage address;
  msghdr message{};
};

udp_socket::received receive_on(descriptor* d, mutable_buffer b, std::error_code& ec, message_address* where) {
  detail::turn t(d, side::read, ec, where);
  if (!t || !detail::prepare(*d, rt::poll_mode::read, ec)) return {};
  datagram m(b.data(), b.size());
  ssize_t n = detail::attempt(*d, rt::poll_mode::read, ec, [&] {
    m.message.msg_name = &m.address;
    m.message.msg_namelen = sizeof m.address;
    return sys::recvmsg(d->fd, &m.message);
  });
  if (n < 0) return {};
  return {static_cast<std::size_t>(n), endpoint::from_native(&m.address, m.message.msg_namelen)};
}

std::size_t send_on(descriptor* d, const_buffer b, const endpoint* to, std::error_code& ec, message_address* where) {
  detail::turn t(d, side::write, ec, where);
  if (!t || !detail::prepare(*d, rt::poll_mode::write, ec)) return 0;
  datagram m(b.data(), b.size());
  if (to) {
    m.message.msg_name = const_cast<void*>(to->data());
    m.message.msg_namelen = static_cast<socklen_t>(to->size());
  }
  ssize_t n = detail::attempt(*d, rt::poll_mode::write, ec, [&] { return sys::sendmsg(d->fd, &m.message); });
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

}  // namespace

udp_socket udp_socket::bind(const endpoint& at, const listen_options& o, std::error_code& ec) {
  rt::throw_if_not_running("a socket");
  ec.clear();
  if (!is_ip(at)) {
    ec = system_error_code(EINVAL);
    return {};
  }
  // A datagram socket has its port to itself, unlike a listener: with SO_REUSEADDR two sockets could bind the port and
  // share its datagrams.
  listen_options mine = o;
  mine.reuse_address = false;
  return udp_socket(detail::bind_socket(SOCK_DGRAM, at, mine, nullptr, ec));
}

udp_socket udp_socket::bind(const endpoint& at, const listen_options& o) {
  return checked("weft: bind", at, [&](std::error_code& ec) { return bind(at, o, ec); });
}

udp_socket udp_socket::bind(std::string_view address, const listen_options& o, std::error_code& ec) {
  rt::throw_if_not_running("a socket");
  ec.clear();
  for (const endpoint& at : resolve_address(address, purpose::bind, transport::udp, rt::forever, background(), ec)) {
    if (udp_socket s = bind(at, o, ec); s.is_open()) return s;
    if (ec != std::errc::address_family_not_supported && ec != std::errc::address_not_available) break;
  }
  return {};
}

udp_socket udp_socket::bind(std::string_view address, const listen_options& o) {
  return checked("weft: bind", address, [&](std::error_code& ec) { return bind(address, o, ec); });
}

udp_socket udp_socket::connect(const endpoint& to, std::error_code& ec) {
  rt::throw_if_not_running("a socket");
  ec.clear();
  if (!is_ip(to)) {
    ec = system_error_code(EINVAL);
    return {};
  }
  return udp_socket(detail::dial(SOCK_DGRAM, to, rt::forever, background(), ec));
}

udp_socket udp_socket::connect(const endpoint& to) {
  return checked("weft: connect", to, [&](std::error_code& ec) { return connect(to, ec); });
}

udp_socket udp_socket::connect(std::string_view address, std::error_code& ec) {
  rt::throw_if_not_running("a socket");
  ec.clear();
  for (const endpoint& to : resolve_address(address, purpose::connect, transport::udp, rt::forever, background(), ec)) {
    if (udp_socket s = connect(to, ec); s.is_open()) return s;
  }
  return {};
}

udp_socket udp_socket::connect(std::string_view address) {
  return checked("weft: connect", address, [&](std::error_code& ec) { return connect(address, ec); });
}

udp_socket udp_socket::adopt(int fd, std::error_code& ec) {
  return udp_socket(detail::adopt_socket(detail::socket_kind::udp, fd, ec));
}

udp_socket udp_socket::adopt(int fd) {
  return checked("weft: adopt descriptor", std::to_string(fd), [&](std::error_code& ec) { return adopt(fd, ec); });
}

udp_socket::received udp_socket::receive_from(mutable_buffer b, std::error_code& ec) {
  return receive_on(d_, b, ec, nullptr);
}

udp_socket::received udp_socket::receive_from(mutable_buffer b) {
  return checked("weft: receive", [&](std::error_code& ec, message_address* w) { return receive_on(d_, b, ec, w); });
}

std::size_t udp_socket::send_to(const_buffer b, const endpoint& to, std::error_code& ec) {
  return send_on(d_, b, &to, ec, nullptr);
}

std::size_t udp_socket::send_to(const_buffer b, const endpoint& to) {
  return checked("weft: send", to, [&](std::error_code& ec) { return send_on(d_, b, &to, ec, nullptr); });
}

std::size_t udp_socket::receive(mutable_buffer b, std::error_code& ec) { return receive_on(d_, b, ec, nullptr).size; }

std::size_t udp_socket::receive(mutable_buffer b) { return receive_from(b).size; }

std::size_t udp_socket::send(const_buffer b, std::error_code& ec) { return send_on(d_, b, nullptr, ec, nullptr); }

std::size_t udp_socket::send(const_buffer b) {
  return checked("weft: send", [&](std::error_code& ec, message_address* w) { return send_on(d_, b, nullptr, ec, w); });
}

endpoint udp_socket::remote_endpoint(std::error_code& ec) const {
  detail::use u(d_, ec);
  if (!u) return {};
  return detail::endpoint_of(d_->fd, sys::peer_name, ec);
}

endpoint udp_socket::remote_endpoint() const {
  return checked("weft: remote endpoint", "", [&](std::error_code& ec) { return remote_endpoint(ec); });
}

}  // namespace weft::net
