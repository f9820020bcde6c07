// Lines of text from a peer that is not trusted.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <weft/net.hpp>

namespace demo::chat {

// Returns `raw` as text that is safe to show on a terminal: valid UTF-8 without control characters. Tabs become spaces,
// other control characters are left out, and what is not UTF-8 becomes U+FFFD.
std::string printable(std::string_view raw);

// True if `text` can be the name of a person or a room: 1 to 20 letters, digits, '-' and '_'.
bool is_name(std::string_view text);

// True if two names differ at most in upper and lower case.
bool same_name(std::string_view a, std::string_view b);

// Splits what a stream brings into lines. Of a longer line only the first `longest` bytes are kept.
class line_reader {
 public:
  static constexpr std::size_t longest = 1024;

  explicit line_reader(weft::net::tcp_stream& from) : from_(from) {}

  // Returns the next line, printable and without its newline, which the last line may lack. Nothing: the stream ended,
  // or failed.
  std::optional<std::string> next();

 private:
  weft::net::tcp_stream& from_;
  std::array<char, 4096> buffer_;
  std::string_view rest_;  // the part of buffer_ that has not been looked at
};

}  // namespace demo::chat
