// An echo server, and clients for it or any other server, within one process, over loopback TCP.
#pragma once

#include <weft/chan.hpp>
#include <weft/go.hpp>
#include <weft/net.hpp>
#include <weft/sync.hpp>

#include <array>
#include <cstddef>
#include <system_error>
#include <utility>
#include <vector>

#include "benchmarks/support/bench.hpp"

namespace bench {

inline constexpr std::size_t message_size = 64;
inline constexpr std::size_t server_buffer = 1024;  // a server does not know how long messages are

// Starts a server on a free port that sends back what it receives, with one goroutine for each connection.
inline weft::net::endpoint start_echo_server() {
  auto listener = weft::net::tcp_listener::bind("127.0.0.1:0");
  auto at = listener.local_endpoint();
  weft::go([l = std::move(listener)]() mutable {
    for (;;) {
      weft::go([s = l.accept()]() mutable {
        std::array<std::byte, server_buffer> buffer;
        std::error_code ec;
        while (std::size_t n = s.read(buffer, ec)) s.write({buffer.data(), n}, ec);
      });
    }
  });
  return at;
}

// Sends a message and reads it back.
inline void echo(weft::net::tcp_stream& s) {
  std::array<std::byte, message_size> buffer{};
  s.write(buffer);
  s.read_exactly(buffer);
}

// Many connections to one server.
class streams {
 public:
  streams(const weft::net::endpoint& server, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) all_.push_back(weft::net::tcp_stream::connect(server));
  }

  std::size_t size() const { return all_.size(); }

  // Calls exchange(stream) on all connections at once, `full` times in all at scale 1. Measures the time for each call,
  // and the percentiles of how long one takes.
  template <class F>
  void talk(job& j, std::size_t full, F exchange) {
    samples times;
    j.measure(j.count(full, size()), [&](std::size_t n) {
      const std::size_t each = std::max<std::size_t>(1, n / size());
      std::vector<samples> of(size());
      weft::wait_group wg;
      weft::chan<void> gate;
      std::int64_t start = 0;  // the same for all, so that the wait for a goroutine's first turn counts
      for (std::size_t c = 0; c < size(); ++c) {
        wg.go([this, c, each, gate, &start, &of, exchange]() mutable {
          gate.recv();
          std::int64_t last = start;
          for (std::size_t i = 0; i < each; ++i) {
            exchange(all_[c]);
            std::int64_t now = now_ns();
            of[c].add(now - std::exchange(last, now));
          }
        });
      }
      start = now_ns();
      gate.close();
      wg.wait();
      times = {};
      for (auto& s : of) times.add(s);
    });
    j.percentiles(times);
  }

 private:
  std::vector<weft::net::tcp_stream> all_;
};

}  // namespace bench
