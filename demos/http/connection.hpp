// One client's connection: reads requests and sends answers until one of the two sides ends it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>
#include <system_error>

#include <weft/net.hpp>

#include "../support/server.hpp"
#include "request.hpp"
#include "response.hpp"

namespace demo::http {

struct settings {
  limits size;
  std::chrono::milliseconds request_timeout{10'000};  // from a request's first byte to its last
  std::chrono::milliseconds idle_timeout{60'000};     // until a request's first byte
  std::chrono::milliseconds write_timeout{30'000};    // for the client to accept what we write
};

// Answers a request, by calls of the writer: send(), or head() and body().
using router = std::function<void(const request&, response_writer&, const stop_stages&)>;

class connection {
 public:
  connection(weft::net::tcp_stream& peer, const settings& s, const router& answer, const stop_stages& stop)
      : peer_(peer), settings_(s), answer_(answer), stop_(stop), out_(peer, s.write_timeout) {}

  // Returns when the conversation is over; the caller closes the connection. Throws std::system_error.
  void serve();

  // The size of the buffer for what has come and is not parsed yet. The head of a request must be smaller.
  static constexpr std::size_t buffer_size = 16 * 1024;

 private:
  bool read_request();
  bool wait_for_request(weft::time_point due);
  bool wait_for_rest(weft::time_point due);
  std::size_t fill(weft::time_point deadline, std::error_code& ec);
  void linger();

  std::string_view buffered() const { return {in_.data() + first_, last_ - first_}; }
  void consume(std::size_t n) { first_ += n; }

  weft::net::tcp_stream& peer_;
  const settings& settings_;
  const router& answer_;
  const stop_stages& stop_;

  request request_;
  response_writer out_;

  // in_[first_, last_) has come and is not parsed yet. The buffer lies on the goroutine's stack. An idle connection has
  // one, too, but it takes no memory until something comes.
  std::size_t first_ = 0, last_ = 0;
  std::array<char, buffer_size> in_;
};

}  // namespace demo::http
