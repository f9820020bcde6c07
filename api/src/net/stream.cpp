// The members that all sockets share, and the reading and writing of connections.

#include "api/src/net/descriptor.hpp"
#include "api/src/net/receive.hpp"
#include "api/src/net/syscalls.hpp"
#include "api/src/support.hpp"
#include "sched/park.hpp"

#include <array>

namespace weft::net::detail {

namespace {

enum : unsigned { for_reading = 1, for_writing = 2 };

void change_deadline(descriptor* d, unsigned which, weft::detail::any_point t, std::error_code& ec) {
  rt::runtime_scope scope;  // a goroutine may be stopped for good as it enters the runtime: it must not be a user then
  use u(d, ec);
  if (!u) return;
  if (which & for_reading) set_poll_deadline(d->pd, rt::poll_mode::read, t.ns());
  if (which & for_writing) set_poll_deadline(d->pd, rt::poll_mode::write, t.ns());
}

void change_deadline(descriptor* d, unsigned which, weft::detail::any_point t) {
  std::error_code ec;
  change_deadline(d, which, t, ec);
  throw_if(ec, "weft: set deadline", "");
}

enum class at_end : bool { returns_0, fails };  // what a call does at the end of the stream

template <at_end End>
std::size_t read(descriptor* d, mutable_buffer b, std::error_code& ec, message_address* where) {
  turn t(d, side::read, ec, where);
  if (!t || !prepare_to_receive(*d, ec) || b.empty()) return 0;
  ssize_t n = receive(*d, b.size(), ec, [&] { return sys::recv(d->fd, b.data(), b.size()); });
  if (n == 0 && End == at_end::fails) ec = error::eof;
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

std::size_t read_exactly(descriptor* d, mutable_buffer b, std::error_code& ec, message_address* where) {
  turn t(d, side::read, ec, where);
  if (!t || !prepare_to_receive(*d, ec)) return 0;
  auto* to = static_cast<std::byte*>(b.data());
  std::size_t done = 0;
  while (done < b.size()) {
    std::size_t left = b.size() - done;
    ssize_t n = receive(*d, left, ec, [&] { return sys::recv(d->fd, to + done, left); });
    if (n == 0) ec = error::eof;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

std::size_t write(descriptor* d, const_buffer b, std::error_code& ec, message_address* where) {
  turn t(d, side::write, ec, where);
  if (!t || !prepare(*d, rt::poll_mode::write, ec)) return 0;
  const auto* from = static_cast<const std::byte*>(b.data());
  std::size_t done = 0;
  while (done < b.size()) {
    ssize_t n = attempt(*d, rt::poll_mode::write, ec, [&] { return sys::send(d->fd, from + done, b.size() - done); });
    if (n < 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

std::size_t write_some(descriptor* d, const_buffer b, std::error_code& ec, message_address* where) {
  turn t(d, side::write, ec, where);
  if (!t || !prepare(*d, rt::poll_mode::write, ec) || b.empty()) return 0;
  ssize_t n = attempt(*d, rt::poll_mode::write, ec, [&] { return sys::send(d->fd, b.data(), b.size()); });
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

// --- several buffers

constexpr std::size_t buffers_at_once = 64;

// The next buffers of a list, for one system call. Begins `offset` bytes into the first of them.
class gather {
 public:
  template <class Span>
  gather(std::span<const Span> buffers, std::size_t offset) noexcept {
    for (const Span& b : buffers) {
      if (count_ == buffers_at_once) break;
      // The system does not write through a buffer that it reads from.
      auto* data = const_cast<std::byte*>(b.data());
      if (b.size() > offset) {
        parts_[count_++] = {data + offset, b.size() - offset};
        size_ += b.size() - offset;
      }
      offset = 0;
    }
    message_.msg_iov = parts_.data();
    message_.msg_iovlen = count_;
  }
  bool empty() const noexcept { return count_ == 0; }
  std::size_t size() const noexcept { return size_; }
  msghdr* message() noexcept { return &message_; }

 private:
  std::array<iovec, buffers_at_once> parts_;
  std::size_t count_ = 0;
  std::size_t size_ = 0;
  msghdr message_{};
};

template <at_end End>
std::size_t readv(descriptor* d, std::span<const std::span<std::byte>> buffers, std::error_code& ec,
                  message_address* where) {
  turn t(d, side::read, ec, where);
  if (!t || !prepare_to_receive(*d, ec)) return 0;
  gather g(buffers, 0);
  if (g.empty()) return 0;
  ssize_t n = receive(*d, g.size(), ec, [&] { return sys::recvmsg(d->fd, g.message()); });
  if (n == 0 && End == at_end::fails) ec = error::eof;
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

std::size_t writev_some(descriptor* d, std::span<const std::span<const std::byte>> buffers, std::error_code& ec,
                        message_address* where) {
  turn t(d, side::write, ec, where);
  if (!t || !prepare(*d, rt::poll_mode::write, ec)) return 0;
  gather g(buffers, 0);
  ssize_t n = attempt(*d, rt::poll_mode::write, ec, [&] { return sys::sendmsg(d->fd, g.message()); });
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

std::size_t writev(descriptor* d, std::span<const std::span<const std::byte>> buffers, std::error_code& ec,
                   message_address* where) {
  turn t(d, side::write, ec, where);
  if (!t || !prepare(*d, rt::poll_mode::write, ec)) return 0;
  std::size_t done = 0, offset = 0;  // offset: into the first of the remaining buffers
  for (;;) {
    while (!buffers.empty() && offset >= buffers.front().size()) {
      offset -= buffers.front().size();
      buffers = buffers.subspan(1);
    }
    if (buffers.empty()) return done;
    gather g(buffers, offset);
    ssize_t n = attempt(*d, rt::poll_mode::write, ec, [&] { return sys::sendmsg(d->fd, g.message()); });
    if (n < 0) return done;
    done += static_cast<std::size_t>(n);
    offset += static_cast<std::size_t>(n);
  }
}

void shutdown_write(descriptor* d, std::error_code& ec, message_address* where) {
  rt::runtime_scope scope;  // as in change_deadline
  use u(d, ec, where);
  if (!u) return;
  if (int n = sys::shutdown(d->fd, SHUT_WR); n < 0) {
    ec = system_error_code(-n);
    return;
  }
  // For a unix socket whose buffer is full the poller gives no event now. So a goroutine that waits to write is told to
  // try again, and fails.
  rt::G* g = rt::poll_try_again(d->pd, rt::poll_mode::write);
  if (g && g->claim(rt::no_ticket)) rt::ready(g);
}

}  // namespace

// --- socket

bool socket::is_open() const noexcept { return d_ && !d_->mutex.closed(); }

int socket::native_handle() const noexcept {
  if (!is_open()) return -1;
  d_->plain.store(false, rt::relaxed);  // see receive.hpp
  return d_->fd;
}

socket::~socket() {
  if (d_) descriptor::drop(d_);
}

void socket::close() noexcept {
  if (d_) d_->close(false);
}

void socket::close(std::error_code& ec) noexcept {
  ec.clear();
  if (!d_ || !d_->close(false)) ec = system_error_code(EBADF);
}

int socket::release(std::error_code& ec) {
  ec.clear();
  int fd = -1;
  if (descriptor* d = d_) {
    fd = d->fd;
    if (d->close(true)) return fd;
  }
  ec = system_error_code(EBADF);
  return -1;
}

int socket::release() {
  return checked("weft: release", "", [&](std::error_code& ec) { return release(ec); });
}

void socket::set_deadline(weft::detail::any_point t) { change_deadline(d_, for_reading | for_writing, t); }
void socket::set_deadline(weft::detail::any_point t, std::error_code& ec) {
  change_deadline(d_, for_reading | for_writing, t, ec);
}
void socket::set_read_deadline(weft::detail::any_point t) { change_deadline(d_, for_reading, t); }
void socket::set_read_deadline(weft::detail::any_point t, std::error_code& ec) {
  change_deadline(d_, for_reading, t, ec);
}
void socket::set_write_deadline(weft::detail::any_point t) { change_deadline(d_, for_writing, t); }
void socket::set_write_deadline(weft::detail::any_point t, std::error_code& ec) {
  change_deadline(d_, for_writing, t, ec);
}

endpoint socket::local_endpoint(std::error_code& ec) const {
  use u(d_, ec);
  if (!u) return {};
  return endpoint_of(d_->fd, sys::local_name, ec);
}

endpoint socket::local_endpoint() const {
  return checked("weft: local endpoint", "", [&](std::error_code& ec) { return local_endpoint(ec); });
}

// --- stream: each call in its two forms

namespace {

// The form that throws.
template <auto call, class Buffer>
std::size_t or_throw(const char* what, descriptor* d, Buffer b) {
  return checked(what, [=](std::error_code& ec, message_address* where) { return call(d, b, ec, where); });
}

}  // namespace

std::size_t stream::read(mutable_buffer b, std::error_code& ec) {
  return detail::read<at_end::returns_0>(d_, b, ec, nullptr);
}
std::size_t stream::read(mutable_buffer b) { return or_throw<detail::read<at_end::returns_0>>("weft: read", d_, b); }

std::size_t stream::read_exactly(mutable_buffer b, std::error_code& ec) {
  return detail::read_exactly(d_, b, ec, nullptr);
}
std::size_t stream::read_exactly(mutable_buffer b) { return or_throw<detail::read_exactly>("weft: read", d_, b); }

std::size_t stream::write(const_buffer b, std::error_code& ec) { return detail::write(d_, b, ec, nullptr); }
std::size_t stream::write(const_buffer b) { return or_throw<detail::write>("weft: write", d_, b); }

std::size_t stream::read_some(mutable_buffer b, std::error_code& ec) {
  return detail::read<at_end::fails>(d_, b, ec, nullptr);
}
std::size_t stream::read_some(mutable_buffer b) { return or_throw<detail::read<at_end::fails>>("weft: read", d_, b); }

std::size_t stream::write_some(const_buffer b, std::error_code& ec) { return detail::write_some(d_, b, ec, nullptr); }
std::size_t stream::write_some(const_buffer b) { return or_throw<detail::write_some>("weft: write", d_, b); }

std::size_t stream::readv(std::span<const std::span<std::byte>> buffers, std::error_code& ec) {
  return detail::readv<at_end::returns_0>(d_, buffers, ec, nullptr);
}
std::size_t stream::readv(std::span<const std::span<std::byte>> buffers) {
  return or_throw<detail::readv<at_end::returns_0>>("weft: read", d_, buffers);
}

std::size_t stream::writev(std::span<const std::span<const std::byte>> buffers, std::error_code& ec) {
  return detail::writev(d_, buffers, ec, nullptr);
}
std::size_t stream::writev(std::span<const std::span<const std::byte>> buffers) {
  return or_throw<detail::writev>("weft: write", d_, buffers);
}

std::size_t stream::readv_some(std::span<const std::span<std::byte>> buffers, std::error_code& ec) {
  return detail::readv<at_end::fails>(d_, buffers, ec, nullptr);
}
std::size_t stream::readv_some(std::span<const std::span<std::byte>> buffers) {
  return or_throw<detail::readv<at_end::fails>>("weft: read", d_, buffers);
}

std::size_t stream::writev_some(std::span<const std::span<const std::byte>> buffers, std::error_code& ec) {
  return detail::writev_some(d_, buffers, ec, nullptr);
}
std::size_t stream::writev_some(std::span<const std::span<const std::byte>> buffers) {
  return or_throw<detail::writev_some>("weft: write", d_, buffers);
}

void stream::shutdown_write(std::error_code& ec) { detail::shutdown_write(d_, ec, nullptr); }
void stream::shutdown_write() {
  std::error_code ec;
  message_address where;
  detail::shutdown_write(d_, ec, &where);
  throw_if(ec, "weft: shutdown", where);
}

std::int64_t stream::from_now(std::int64_t ns) noexcept { return deadline_after(ns); }

endpoint stream::remote_endpoint(std::error_code& ec) const {
  use u(d_, ec);
  if (!u) return {};
  if (d_->where.sin6_family != 0) return to_endpoint(d_->where);
  return endpoint_of(d_->fd, sys::peer_name, ec);
}

endpoint stream::remote_endpoint() const {
  return checked("weft: remote endpoint", "", [&](std::error_code& ec) { return remote_endpoint(ec); });
}

}  // namespace weft::net::detail
