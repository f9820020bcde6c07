// Loopback sockets for the programs that make the system calls themselves.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <stdexcept>

namespace bench {

inline int check(int result) {
  if (result < 0) throw std::runtime_error("a system call failed");
  return result;
}

// Listens on a port that the system chooses, and stores the address in *at.
inline int listen_on_loopback(sockaddr_in* at) {
  *at = {};
  at->sin_family = AF_INET;
  at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof *at;
  int listener = check(socket(AF_INET, SOCK_STREAM, 0));
  check(bind(listener, reinterpret_cast<sockaddr*>(at), size));
  check(listen(listener, 1));
  check(getsockname(listener, reinterpret_cast<sockaddr*>(at), &size));
  return listener;
}

inline int connect_to(const sockaddr_in& at) {
  int client = check(socket(AF_INET, SOCK_STREAM, 0));
  check(connect(client, reinterpret_cast<const sockaddr*>(&at), sizeof at));
  return client;
}

}  // namespace bench
