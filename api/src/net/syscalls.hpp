// The system calls of I/O. They return the result or -errno. They are never inlined, since a compiler keeps the address
// of errno across a suspension. None of them blocks: the descriptors are non-blocking. EINTR is dealt with here.
#pragma once

#include "runtime/config.hpp"

#include <cstddef>
#include <sys/socket.h>
#include <sys/types.h>

namespace weft::net::sys {

WEFT_NOINLINE int open_socket(int family, int type) noexcept;
WEFT_NOINLINE int make_pair(int (&fds)[2]) noexcept;  // unix streams
WEFT_NOINLINE int bind(int fd, const void* address, std::size_t size) noexcept;
WEFT_NOINLINE int listen(int fd, int backlog) noexcept;
WEFT_NOINLINE int connect(int fd, const void* address, std::size_t size) noexcept;
WEFT_NOINLINE int accept(int fd, sockaddr_storage* from, socklen_t* size) noexcept;
WEFT_NOINLINE int shutdown(int fd, int how) noexcept;
WEFT_NOINLINE int close(int fd) noexcept;
WEFT_NOINLINE int set_nonblocking(int fd) noexcept;

WEFT_NOINLINE ssize_t recv(int fd, void* data, std::size_t size) noexcept;
WEFT_NOINLINE ssize_t send(int fd, const void* data, std::size_t size) noexcept;
WEFT_NOINLINE ssize_t recvmsg(int fd, msghdr* m) noexcept;
WEFT_NOINLINE ssize_t sendmsg(int fd, const msghdr* m) noexcept;

WEFT_NOINLINE int set_option(int fd, int level, int name, int value) noexcept;
WEFT_NOINLINE int option(int fd, int name, int* value) noexcept;  // of SOL_SOCKET
WEFT_NOINLINE int pending_error(int fd) noexcept;                 // SO_ERROR: 0 or an errno value
WEFT_NOINLINE int local_name(int fd, sockaddr_storage* s, socklen_t* size) noexcept;
WEFT_NOINLINE int peer_name(int fd, sockaddr_storage* s, socklen_t* size) noexcept;

// Tells whether fd could be read or written now: > 0 yes, 0 no, < 0 -errno (-EBADF).
WEFT_NOINLINE int poll_once(int fd, bool writable) noexcept;
WEFT_NOINLINE bool has_data(int fd) noexcept;  // nothing but that can be read
WEFT_NOINLINE int duplicate(int fd) noexcept;

}  // namespace weft::net::sys
