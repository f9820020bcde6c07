// Names of hosts and ports. The test replaces the lookup of names (getaddrinfo).

#include "tests/support/catch.hpp"

#include <weft/weft.hpp>

#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <netdb.h>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

using namespace std::chrono_literals;

namespace {

sockaddr_in address_of(const char* host, std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  inet_pton(AF_INET, host, &a.sin_addr);
  return a;
}

// Every name has these two addresses, but "unusable.name" has another one in the place of `alive`.
constexpr const char* dead = "127.0.0.2";
constexpr const char* alive = "127.0.0.1";
constexpr const char* unusable = "224.0.0.1";  // no TCP connection goes there: "Network is unreachable"
std::atomic<bool> slow_name_answers{false};
sockaddr_in found[2];
addrinfo results[2];

// The ports of "of-both", a service over TCP and UDP, and "of-udp".
constexpr std::uint16_t tcp_port = 1001, udp_port = 1002;

// A listener that has no room for one more connection.
class full {
 public:
  explicit full(std::uint16_t port) : at_(address_of(dead, port)) {
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&at_), sizeof at_) == 0);
    REQUIRE(::listen(listener_, 0) == 0);
    for (int fd : waiting_) static_cast<void>(::connect(fd, reinterpret_cast<sockaddr*>(&at_), sizeof at_));
  }
  ~full() {
    ::close(listener_);
    for (int fd : waiting_) ::close(fd);
  }
  full(const full&) = delete;
  full& operator=(const full&) = delete;

 private:
  static int any() { return ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }
  sockaddr_in at_;
  int listener_ = any();
  int waiting_[4] = {any(), any(), any(), any()};
};

}  // namespace

extern "C" {
int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** out) {
  if (host && host == std::string("slow.name")) {
    while (!slow_name_answers) ::usleep(1000);
    return EAI_AGAIN;
  }
  std::uint16_t port = 0;
  if (service == std::string("of-both")) {
    port = hints->ai_socktype == SOCK_DGRAM ? udp_port : tcp_port;
  } else if (service == std::string("of-udp")) {
    if (hints->ai_socktype != SOCK_DGRAM) return EAI_SERVICE;
    port = udp_port;
  } else {
    port = static_cast<std::uint16_t>(std::stoi(service));
  }
  found[0] = address_of(dead, port);
  found[1] = address_of(host && host == std::string("unusable.name") ? unusable : alive, port);
  for (std::size_t i = 0; i < std::size(found); ++i) {
    results[i] = {};
    results[i].ai_family = AF_INET;
    results[i].ai_socktype = SOCK_STREAM;
    results[i].ai_addr = reinterpret_cast<sockaddr*>(&found[i]);
    results[i].ai_addrlen = sizeof found[i];
    results[i].ai_next = i + 1 < std::size(found) ? &results[i + 1] : nullptr;
  }
  *out = results;
  return 0;
}
void freeaddrinfo(addrinfo*) {}
}

TEST_CASE("the name of a port is one of UDP's for UDP sockets") {
  weft::run([] {
    using weft::net::udp_socket;
    for (auto service : {"of-both", "of-udp"}) {
      CAPTURE(service);
      CHECK(udp_socket::connect(std::string(alive) + ":" + service).remote_endpoint().port() == udp_port);
      CHECK(udp_socket::connect(std::string(":") + service).remote_endpoint().port() == udp_port);
    }
    CHECK(weft::net::resolve(alive, "of-both").front().port() == tcp_port);
    CHECK(weft::net::resolve(alive, "of-udp").front().port() == udp_port);
    std::error_code ec;
    weft::net::tcp_stream::connect(std::string(alive) + ":of-udp", ec);
    CHECK(ec == std::errc::invalid_argument);
  });
}

TEST_CASE("connect: an address that is of no use here does not hide the error of one that is") {
  weft::run([] {
    std::error_code ec;
    weft::net::tcp_stream::connect(std::string(unusable) + ":1", ec);
    CHECK(ec == std::errc::network_unreachable);
    weft::net::tcp_stream::connect("unusable.name:1", ec);
    CHECK(ec == std::errc::connection_refused);
  });
}

// The first of the addresses does not answer.
TEST_CASE("connect: the addresses of a name share the time, be it a time limit's or a context's") {
  weft::run([] {
    auto l = weft::net::tcp_listener::bind(std::string(alive) + ":0");
    const std::uint16_t port = l.local_endpoint().port();
    const full first(port);
    const std::string name = "a.name:" + std::to_string(port);
    for (bool with_context : {false, true}) {
      CAPTURE(with_context);
      std::error_code ec;
      const auto [ctx, cancel] = weft::with_timeout(weft::background(), 2s);
      auto s =
          with_context ? weft::net::tcp_stream::connect(name, ctx, ec) : weft::net::tcp_stream::connect(name, 2s, ec);
      CHECK(!ec);
      CHECK(s.is_open());
    }
  });
}

TEST_CASE("connect: a look-up that nobody waits for any more does not count as a goroutine") {
  weft::run([] {
    std::error_code ec;
    weft::net::tcp_stream::connect("slow.name:1", 5ms, ec);
    CHECK(ec == std::errc::timed_out);
    CHECK(weft::num_goroutines() == 1);
    slow_name_answers = true;
  });
  CHECK(weft::num_goroutines() == 0);
}
