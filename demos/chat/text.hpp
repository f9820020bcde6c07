// Lines of text from a peer nobody knows.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <weft/net.hpp>

namespace demo::chat {

// What may be shown on somebody's terminal: valid UTF-8 without control characters. Tabs become spaces, other control
// characters are left out, and what is not UTF-8 becomes U+FFFD.
std::string printable(std::string_view raw);

// A name for a person or a room: 1 to 20 letters, digits, '-' and '_'.
bool is_name(std::string_view text);

// Whether two names differ at most in upper and lower case.
bool same_name(std::string_view a, std::string_view b);

// Cuts what a stream brings into lines. Of a long line the first `longest` bytes count.
class line_reader {
 public:
  static constexpr std::size_t longest = 1024;

  explicit line_reader(weft::net::tcp_stream& from) : from_(from) {}

  // The next line, printable and without its end, which the last one may lack. Nothing: the stream ended, or failed.
  std::optional<std::string> next();

 private:
  weft::net::tcp_stream& from_;
  std::array<char, 4096> buffer_;
  std::string_view rest_;  // in buffer_, not looked at yet
};

}  // namespace demo::chat
