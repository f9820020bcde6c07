// An echo server and its clients with blocking sockets, over loopback TCP.
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

namespace bench {

inline constexpr std::size_t message_size = 64;
inline constexpr std::size_t server_buffer = 1024;  // a server does not know how long messages are

// Connections to a server within this process that answers each one in a thread of its own.
class echo_connections {
 public:
  explicit echo_connections(std::size_t n);
  ~echo_connections();
  echo_connections(const echo_connections&) = delete;

  const std::vector<int>& clients() const { return clients_; }

 private:
  std::vector<int> clients_;
  std::vector<std::thread> servers_;
};

// Sends a message and reads it back.
void echo(int fd);

}  // namespace bench
