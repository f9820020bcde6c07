#include "text.hpp"

#include <algorithm>

namespace demo::chat {

namespace {

// The code point at the start of a text that is not empty, and its length there in bytes; length 0: this is not UTF-8.
struct decoded {
  char32_t code;
  std::size_t length;
};

decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return {0, 0};
  char32_t code = first & (0xff >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < least[length] || code > 0x10ffff || surrogate) return {0, 0};
  return {code, length};
}

// True for C0, DEL and C1, among which are the characters that terminals take for commands.
bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

}  // namespace

std::string printable(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  while (!raw.empty()) {
    const auto [code, length] = decode(raw);
    if (length == 0) {
      out += "\uFFFD";
    } else if (code == '\t') {
      out += ' ';
    } else if (!is_control(code)) {
      out += raw.substr(0, length);
    }
    raw.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 20 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::optional<std::string> line_reader::next() {
  std::string line;
  while (true) {
    const std::size_t end = rest_.find('\n');
    line += rest_.substr(0, std::min(end, longest - line.size()));
    if (end != std::string_view::npos) {
      rest_.remove_prefix(end + 1);
      return printable(line);
    }
    std::error_code ec;
    const std::size_t n = from_.read(buffer_, ec);
    rest_ = {buffer_.data(), n};
    if (n > 0) continue;
    if (ec || line.empty()) return std::nullopt;
    return printable(line);  // the stream ended without a newline
  }
}

}  // namespace demo::chat
