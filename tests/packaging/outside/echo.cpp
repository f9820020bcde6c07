// An echo server on the loopback interface, and clients that check what comes back.
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <weft/weft.hpp>

namespace {

void serve(weft::net::tcp_stream s) {
  std::byte buffer[4096];
  while (std::size_t n = s.read(std::span<std::byte>(buffer))) s.write(std::span<const std::byte>(buffer, n));
}

bool converse(const std::string& address, int client) {
  auto s = weft::net::tcp_stream::connect(address);
  for (int i = 0; i < 100; ++i) {
    std::string said = "client " + std::to_string(client) + ", line " + std::to_string(i), heard(said.size(), '\0');
    s.write(std::as_bytes(std::span(said)));
    s.read_exactly(std::as_writable_bytes(std::span(heard)));
    if (heard != said) return false;
  }
  return true;
}

}  // namespace

int main() {
  return weft::run([] {
    auto listener = weft::net::tcp_listener::bind("127.0.0.1:0");
    std::string address = "127.0.0.1:" + std::to_string(listener.local_endpoint().port());
    weft::go([&listener] {
      std::error_code closed;
      for (;;) {
        auto s = listener.accept(closed);
        if (closed) return;
        weft::go(serve, std::move(s));
      }
    });

    constexpr int clients = 50;
    weft::chan<bool> results;
    for (int i = 0; i < clients; ++i) weft::go([=] { results.send(converse(address, i)); });
    int good = 0;
    for (int i = 0; i < clients; ++i) good += results.recv().value() ? 1 : 0;
    std::printf("echo: %d of %d clients\n", good, clients);
    return good == clients ? 0 : 1;
  });
}
