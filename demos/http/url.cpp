#include "url.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace demo::http {

namespace {

// "http://host:80/path" is what a client sends to a proxy, and a server must understand it, too.
constexpr std::string_view scheme = "http://";

bool is_absolute(std::string_view target) {
  return target.size() > scheme.size() && std::equal(scheme.begin(), scheme.end(), target.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

}  // namespace

bool split_target(std::string_view target, std::string& path, std::string& query) {
  const bool absolute = is_absolute(target);
  if (absolute) {
    target.remove_prefix(scheme.size());
    const std::size_t end = target.find_first_of("/?#");
    if (end == 0) return false;  // no host
    target.remove_prefix(std::min(end, target.size()));
  }
  const std::size_t mark = target.find('?');
  if (mark != std::string_view::npos) query = target.substr(mark + 1);
  std::string_view escaped = target.substr(0, mark);
  if (absolute && escaped.empty()) escaped = "/";
  return escaped.starts_with('/') && percent_decode(escaped, path) && path.find('\0') == std::string::npos;
}

bool percent_decode(std::string_view text, std::string& out) {
  out.clear();
  while (true) {
    const std::size_t escape = text.find('%');
    out += text.substr(0, escape);
    if (escape == std::string_view::npos) return true;
    text.remove_prefix(escape + 1);
    if (text.size() < 2) return false;
    unsigned char byte = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + 2, byte, 16);
    if (ec != std::errc() || end != text.data() + 2) return false;
    out += static_cast<char>(byte);
    text.remove_prefix(2);
  }
}

std::optional<std::string_view> query_value(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=')
      return pair.substr(key.size() + 1);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
  }
  return std::nullopt;
}

}  // namespace demo::http
