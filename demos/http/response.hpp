// Collects answers in one buffer and sends them with one write: several answers, if several requests had come.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>

#include <weft/net.hpp>

namespace demo::http {

class response_writer {
 public:
  // Each write to `to` must end within `limit`.
  response_writer(weft::net::tcp_stream& to, std::chrono::milliseconds limit) : stream_(to), limit_(limit) {}

  // The properties of a request that its answer depends on.
  struct form {
    bool head_only = false;
    bool keep_alive = true;
    int version = 11;
  };
  void begin(const form& f) { form_ = f; }
  bool keep_alive() const { return form_.keep_alive; }

  // Writes a whole answer.
  void send(int status, std::string_view type, std::string_view body);

  // Writes a page of text that says what went wrong.
  void send_error(int status, std::string_view text);

  // Write an answer in pieces: its head, then `length` bytes of body. Large pieces are sent at once, without a copy.
  void head(int status, std::string_view type, std::uint64_t length);
  void body(std::string_view piece);
  bool wants_body() const { return !form_.head_only; }

  // Sends what has been collected.
  void flush();

 private:
  void write(const std::array<std::span<const std::byte>, 2>& parts);
  std::string_view date();

  weft::net::tcp_stream& stream_;
  std::chrono::milliseconds limit_;
  form form_;
  std::string out_;
  std::time_t date_of_ = -1;
  char date_[32];
};

}  // namespace demo::http
