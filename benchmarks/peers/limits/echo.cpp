// Loopback echo in one thread with one epoll instance, which serves both ends of every connection and does nothing
// else.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "benchmarks/support/bench.hpp"
#include "benchmarks/support/loopback.hpp"

namespace {

using bench::check;

constexpr std::size_t message_size = 64;

void send_message(int fd) {
  std::array<char, message_size> buffer{};
  check(static_cast<int>(send(fd, buffer.data(), buffer.size(), MSG_NOSIGNAL)));
}

// Opens a connection and returns its ends: client, server.
std::pair<int, int> connection() {
  sockaddr_in at;
  int listener = bench::listen_on_loopback(&at);
  int client = bench::connect_to(at);
  int server = check(accept(listener, nullptr, nullptr));
  close(listener);
  for (int fd : {client, server}) {
    int on = 1;
    check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
  }
  return {client, server};
}

void echo_on(bench::job& j, std::size_t wanted, std::size_t messages) {
  const std::size_t connections = bench::job::connections(wanted);
  int poller = check(epoll_create1(0));
  std::vector<int> clients, servers;
  for (std::size_t i = 0; i < connections; ++i) {
    auto [client, server] = connection();
    clients.push_back(client);
    servers.push_back(server);
    for (auto [fd, is_client] : {std::pair{client, true}, {server, false}}) {
      epoll_event e{};
      e.events = EPOLLIN | EPOLLET;
      e.data.u64 = static_cast<std::uint64_t>(fd) << 1 | is_client;
      check(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e));
    }
  }
  j.measure(j.count(messages, connections), [&](std::size_t n) {
    std::size_t to_send = n / connections * connections, to_receive = to_send;
    for (int fd : clients) {
      if (to_send == 0) break;
      send_message(fd);
      --to_send;
    }
    while (to_receive > 0) {
      std::array<epoll_event, 128> events;
      int ready = epoll_wait(poller, events.data(), events.size(), -1);
      for (int i = 0; i < ready; ++i) {
        int fd = static_cast<int>(events[i].data.u64 >> 1);
        bool is_client = events[i].data.u64 & 1;
        std::array<char, message_size> buffer;
        if (recv(fd, buffer.data(), buffer.size(), 0) != message_size)
          throw std::runtime_error("a message came in parts");
        if (is_client && --to_receive == 0) break;
        if (is_client && to_send == 0) continue;
        if (is_client) --to_send;
        send_message(fd);
      }
    }
  });
}

const bench::workloads here{
    {"echo", [](bench::job& j) { echo_on(j, 1, 50'000); }},
    {"echo_64", [](bench::job& j) { echo_on(j, 64, 50'000); }},
    {"echo_1k", [](bench::job& j) { echo_on(j, 1000, 100'000); }},
    {"echo_10k", [](bench::job& j) { echo_on(j, 10'000, 200'000); }},
};

}  // namespace
