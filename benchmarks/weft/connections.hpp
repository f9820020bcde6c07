// An echo server and its client, within one process, over loopback TCP.
#pragma once

#include <weft/go.hpp>
#include <weft/net.hpp>

#include <array>
#include <cstddef>
#include <system_error>
#include <utility>

namespace bench {

inline constexpr std::size_t message_size = 64;

// Listens on a free port and answers every connection with what it sends, a goroutine each.
inline weft::net::endpoint start_echo_server() {
  auto listener = weft::net::tcp_listener::bind("127.0.0.1:0");
  auto at = listener.local_endpoint();
  weft::go([l = std::move(listener)]() mutable {
    for (;;) {
      weft::go([s = l.accept()]() mutable {
        std::array<std::byte, message_size> buffer;
        std::error_code ec;
        while (std::size_t n = s.read(buffer, ec)) s.write({buffer.data(), n}, ec);
      });
    }
  });
  return at;
}

// A message there and back.
inline void echo(weft::net::tcp_stream& s) {
  std::array<std::byte, message_size> buffer{};
  s.write(buffer);
  s.read_exactly(buffer);
}

}  // namespace bench
