#include "benchmarks/peers/std_thread/sockets.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "benchmarks/support/loopback.hpp"

namespace bench {

namespace {

void send_at_once(int fd) {
  int on = 1;
  check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

void answer(int fd) {
  std::array<char, server_buffer> buffer;
  for (ssize_t n; (n = read(fd, buffer.data(), buffer.size())) > 0;) {
    if (write(fd, buffer.data(), static_cast<std::size_t>(n)) != n) break;
  }
  close(fd);
}

}  // namespace

echo_connections::echo_connections(std::size_t n) {
  sockaddr_in at;
  int listener = listen_on_loopback(&at);
  for (std::size_t i = 0; i < n; ++i) {
    int client = connect_to(at);
    int server = check(accept(listener, nullptr, nullptr));
    send_at_once(client);
    send_at_once(server);
    clients_.push_back(client);
    servers_.emplace_back(answer, server);
  }
  close(listener);
}

echo_connections::~echo_connections() {
  for (int fd : clients_) close(fd);
  for (auto& t : servers_) t.join();
}

void echo(int fd) {
  std::array<char, message_size> buffer{};
  check(static_cast<int>(write(fd, buffer.data(), buffer.size())));
  if (recv(fd, buffer.data(), buffer.size(), MSG_WAITALL) != message_size)
    throw std::runtime_error("the answer is cut");
}

}  // namespace bench
