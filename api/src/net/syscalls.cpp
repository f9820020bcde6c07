#include "api/src/net/syscalls.hpp"

#include "runtime/own_descriptor.hpp"
#include "runtime/sanitizer.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::net::sys {

namespace {

template <class Call>
auto retry(Call call) noexcept -> decltype(call()) {
  for (;;) {
    auto n = call();
    if (n >= 0) return n;
    if (errno != EINTR) return -errno;
  }
}

// The calls that carry data are made by their numbers. The C library's functions are cancellation points, which in a
// process with several threads takes two locked instructions around each call; and a call that never blocks need not be
// one. A sanitizer is told by the C library's functions what is read and written, and what happens before what.
bool by_number() noexcept { return WEFT_LIKELY(!rt::asan_running() && !rt::tsan_running()); }

// A socket is not to be a program's standard stream, to which others write.
int no_standard_stream(int fd) noexcept {
  fd = rt::beyond_standard_streams(fd);
  return fd >= 0 ? fd : -errno;
}

// Returns what poll() finds of `events`, and what it always tells; or -errno.
int poll_now(int fd, short events) noexcept {
  pollfd p{fd, events, 0};
  const int n = retry([&] { return ::poll(&p, 1, 0); });
  return n > 0 ? p.revents : n;
}

}  // namespace

int open_socket(int family, int type) noexcept {
  return no_standard_stream(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

int make_pair(int (&fds)[2]) noexcept {
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) return -errno;
  for (int& fd : fds) fd = no_standard_stream(fd);
  if (fds[0] >= 0 && fds[1] >= 0) return 0;
  const int error = std::min(fds[0], fds[1]);
  for (int fd : fds) {
    if (fd >= 0) ::close(fd);
  }
  return error;
}

int bind(int fd, const void* address, std::size_t size) noexcept {
  return ::bind(fd, static_cast<const sockaddr*>(address), static_cast<socklen_t>(size)) == 0 ? 0 : -errno;
}

int listen(int fd, int backlog) noexcept { return ::listen(fd, backlog) == 0 ? 0 : -errno; }

int connect(int fd, const void* address, std::size_t size) noexcept {
  // Not repeated after EINTR: the connection is on its way, as with EINPROGRESS.
  return ::connect(fd, static_cast<const sockaddr*>(address), static_cast<socklen_t>(size)) == 0 ? 0 : -errno;
}

int accept(int fd, sockaddr_storage* from, socklen_t* size) noexcept {
  const int accepted = retry([&] {
    *size = sizeof *from;
    return ::accept4(fd, reinterpret_cast<sockaddr*>(from), size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  });
  if (accepted < 0 || accepted > STDERR_FILENO) return accepted;
  // As no_standard_stream does; but if there is no other number, this one is kept: a connection that has been accepted
  // cannot go back to where it waited.
  const int other = duplicate(accepted);
  if (other < 0) return accepted;
  ::close(accepted);
  return other;
}

int shutdown(int fd, int how) noexcept { return ::shutdown(fd, how) == 0 ? 0 : -errno; }

// Not repeated after EINTR: Linux has given the number away already.
int close(int fd) noexcept { return ::close(fd) == 0 ? 0 : -errno; }

int set_nonblocking(int fd) noexcept {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return -errno;
  if (flags & O_NONBLOCK) return 0;
  return ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 ? 0 : -errno;
}

ssize_t recv(int fd, void* data, std::size_t size) noexcept {
  return retry([&] {
    return by_number() ? ::syscall(SYS_recvfrom, fd, data, size, 0, nullptr, nullptr) : ::recv(fd, data, size, 0);
  });
}

ssize_t send(int fd, const void* data, std::size_t size) noexcept {
  return retry([&] {
    return by_number() ? ::syscall(SYS_sendto, fd, data, size, MSG_NOSIGNAL, nullptr, 0)
                       : ::send(fd, data, size, MSG_NOSIGNAL);
  });
}

ssize_t recvmsg(int fd, msghdr* m) noexcept {
  return retry([&] { return by_number() ? ::syscall(SYS_recvmsg, fd, m, 0) : ::recvmsg(fd, m, 0); });
}

ssize_t sendmsg(int fd, const msghdr* m) noexcept {
  return retry(
      [&] { return by_number() ? ::syscall(SYS_sendmsg, fd, m, MSG_NOSIGNAL) : ::sendmsg(fd, m, MSG_NOSIGNAL); });
}

int set_option(int fd, int level, int name, int value) noexcept {
  return ::setsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : -errno;
}

int option(int fd, int name, int* value) noexcept {
  socklen_t size = sizeof *value;
  return ::getsockopt(fd, SOL_SOCKET, name, value, &size) == 0 ? 0 : -errno;
}

int pending_error(int fd) noexcept {
  int value = 0;
  int n = option(fd, SO_ERROR, &value);
  return n < 0 ? -n : value;
}

int local_name(int fd, sockaddr_storage* s, socklen_t* size) noexcept {
  *size = sizeof *s;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(s), size) == 0 ? 0 : -errno;
}

int peer_name(int fd, sockaddr_storage* s, socklen_t* size) noexcept {
  *size = sizeof *s;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(s), size) == 0 ? 0 : -errno;
}

int poll_once(int fd, bool writable) noexcept {
  if (fd < 0) return -EBADF;  // poll() would ignore it
  const int n = poll_now(fd, writable ? POLLOUT : POLLIN | POLLRDHUP);
  return n > 0 && n & POLLNVAL ? -EBADF : n;
}

bool has_data(int fd) noexcept {
  const int n = poll_now(fd, POLLIN);
  return n > 0 && n & POLLIN;
}

int duplicate(int fd) noexcept {
  int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);  // as in own_descriptor.hpp
  return copy >= 0 ? copy : -errno;
}

}  // namespace weft::net::sys
