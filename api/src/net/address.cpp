// Endpoints: addresses as text and in the system's form.

#include "api/src/net/address.hpp"

#include "api/src/net/descriptor.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <fmt/format.h>
#include <net/if.h>
#include <sys/un.h>

namespace weft::net {

namespace {

class error_category_type : public std::error_category {
 public:
  const char* name() const noexcept override { return "weft.net"; }
  std::string message(int code) const override {
    switch (static_cast<error>(code)) {
      case error::eof: return "End of stream";
      case error::host_not_found: return "Host not found";
      case error::try_again: return "The name server did not answer";
      case error::no_recovery: return "Name resolution failed";
    }
    return "Unknown error";
  }
};

template <class T>
T as(const void* bytes) noexcept {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
endpoint from(const T& native) noexcept {
  return endpoint::from_native(&native, sizeof native);
}

sa_family_t family_of(const endpoint& e) noexcept { return as<sa_family_t>(e.data()); }

constexpr std::size_t unix_header = offsetof(sockaddr_un, sun_path);

// What makes two endpoints equal: not the padding of the system's form, nor IPv6's flow label, nor what follows a
// path's NUL.
struct identity {
  explicit identity(const endpoint& e) noexcept : family(family_of(e)), address(bytes_of(e, 0, e.size())) {
    if (e.is_v4()) {
      address = bytes_of(e, offsetof(sockaddr_in, sin_addr), sizeof(in_addr));
      port = e.port();
    } else if (e.is_v6()) {
      address = bytes_of(e, offsetof(sockaddr_in6, sin6_addr), sizeof(in6_addr));
      port = e.port();
      interface = as<sockaddr_in6>(e.data()).sin6_scope_id;
    } else if (e.is_unix() && e.size() > unix_header && address[unix_header] != '\0') {
      address = address.substr(0, address.find('\0', unix_header));
    }
  }

  friend auto operator<=>(const identity&, const identity&) = default;

  sa_family_t family;
  std::string_view address;  // of e's bytes
  std::uint16_t port = 0;
  std::uint32_t interface = 0;

 private:
  static std::string_view bytes_of(const endpoint& e, std::size_t at, std::size_t size) noexcept {
    return {static_cast<const char*>(e.data()) + at, size};
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const error_category_type category;
  return category;
}

endpoint::endpoint() noexcept {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  std::memcpy(bytes_.data(), &a, sizeof a);
  size_ = sizeof a;
}

endpoint endpoint::from_native(const void* sockaddr, std::size_t size) noexcept {
  static_assert(sizeof(sockaddr_un) <= sizeof bytes_);
  endpoint e;
  if (size < sizeof(sa_family_t) || size > sizeof e.bytes_) return e;
  e.bytes_ = {};
  std::memcpy(e.bytes_.data(), sockaddr, size);
  e.size_ = static_cast<std::uint32_t>(size);
  if (e.is_v6() && size >= sizeof(sockaddr_in6)) {
    // This is how a socket of both families shows an IPv4 peer. Such a socket also takes the plain IPv4 form.
    auto v6 = as<sockaddr_in6>(sockaddr);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      sockaddr_in v4{};
      v4.sin_family = AF_INET;
      v4.sin_port = v6.sin6_port;
      std::memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + 12, sizeof v4.sin_addr);
      return from_native(&v4, sizeof v4);
    }
  }
  return e;
}

bool endpoint::is_v4() const noexcept { return family_of(*this) == AF_INET; }
bool endpoint::is_v6() const noexcept { return family_of(*this) == AF_INET6; }
bool endpoint::is_unix() const noexcept { return family_of(*this) == AF_UNIX; }

std::uint16_t endpoint::port() const noexcept {
  if (is_v4()) return ntohs(as<sockaddr_in>(data()).sin_port);
  if (is_v6()) return ntohs(as<sockaddr_in6>(data()).sin6_port);
  return 0;
}

void endpoint::set_port(std::uint16_t port) noexcept {
  // In both families the port comes right after the family.
  std::uint16_t n = htons(port);
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  if (!is_unix()) std::memcpy(bytes_.data() + offsetof(sockaddr_in, sin_port), &n, sizeof n);
}

std::string endpoint::address() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_v4()) {
    auto a = as<sockaddr_in>(data());
    return ::inet_ntop(AF_INET, &a.sin_addr, text, sizeof text);
  }
  if (is_v6()) {
    auto a = as<sockaddr_in6>(data());
    std::string s = ::inet_ntop(AF_INET6, &a.sin6_addr, text, sizeof text);
    if (a.sin6_scope_id != 0) {
      char name[IF_NAMESIZE];
      s += '%';
      s += ::if_indextoname(a.sin6_scope_id, name) ? std::string(name) : std::to_string(a.sin6_scope_id);
    }
    return s;
  }
  if (is_unix() && size_ > unix_header) {
    const char* path = reinterpret_cast<const char*>(bytes_.data()) + unix_header;
    std::size_t n = size_ - unix_header;
    if (path[0] == '\0') return "@" + std::string(path + 1, n - 1);
    return std::string(path, ::strnlen(path, n));
  }
  return "";
}

std::string endpoint::to_string() const {
  if (is_v4()) return fmt::format("{}:{}", address(), port());
  if (is_v6()) return fmt::format("[{}]:{}", address(), port());
  return address();
}

bool operator==(const endpoint& a, const endpoint& b) noexcept { return identity(a) == identity(b); }
std::strong_ordering operator<=>(const endpoint& a, const endpoint& b) noexcept { return identity(a) <=> identity(b); }

std::size_t endpoint::hash() const noexcept {
  const identity i(*this);
  constexpr std::size_t spread = 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio
  return (std::hash<std::string_view>()(i.address) + i.interface) * spread + i.port;
}

// --- text

namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

// True if s may be a host name: labels of at most 63 letters, digits, hyphens and underscores, separated by dots. One
// dot may end the name. Bytes beyond ASCII are left to the resolver. Text of only digits and dots is an address or
// malformed, but not a name; so is text that the resolver would take for an address (0x7f.1).
bool may_be_name(std::string_view s) {
  if (s.empty() || s.size() > 253) return false;
  bool only_digits = true;
  std::size_t label = 0;
  for (char c : s) {
    bool letter = is_letter(c) || static_cast<unsigned char>(c) >= 0x80;
    if (c == '.' ? label == 0 : !letter && !is_digit(c) && c != '-' && c != '_') return false;
    label = c == '.' ? 0 : label + 1;
    if (label > 63) return false;
    only_digits = only_digits && (is_digit(c) || c == '.');
  }
  in_addr old_style;
  return !only_digits && ::inet_aton(std::string(s).c_str(), &old_style) == 0;
}

bool may_be_service(std::string_view s) noexcept {
  for (char c : s) {
    if (!is_letter(c) && !is_digit(c) && c != '-' && c != '_' && c != '.' && c != '+') return false;
  }
  return s.size() < 64 && std::any_of(s.begin(), s.end(), is_letter);  // some begin with a digit
}

std::optional<std::uint16_t> parse_port(std::string_view s) noexcept {
  std::uint32_t n = 0;
  if (s.empty() || s.size() > 5) return std::nullopt;
  for (char c : s) {
    if (!is_digit(c)) return std::nullopt;
    n = n * 10 + static_cast<std::uint32_t>(c - '0');
  }
  if (n > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(n);
}

std::optional<endpoint> parse_ip(std::string_view s, std::uint16_t port) {
  std::string text(s);
  sockaddr_in v4{};
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1 && text.size() == std::strlen(text.c_str())) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    return from(v4);
  }
  sockaddr_in6 v6{};
  if (std::size_t percent = text.find('%'); percent != std::string::npos) {
    std::string scope = text.substr(percent + 1);
    text.resize(percent);
    if (scope.empty() || scope.size() >= IF_NAMESIZE || scope.find('\0') != std::string::npos) return std::nullopt;
    bool number = true;
    for (char c : scope) number = number && is_digit(c);
    v6.sin6_scope_id =
        number && scope.size() < 10 ? static_cast<std::uint32_t>(std::stoul(scope)) : ::if_nametoindex(scope.c_str());
    if (v6.sin6_scope_id == 0) return std::nullopt;
  }
  if (::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1 && text.size() == std::strlen(text.c_str())) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    return from(v6);
  }
  return std::nullopt;
}

std::optional<host_port> split_host_port(std::string_view text) {
  host_port r;
  std::size_t colon;
  if (!text.empty() && text.front() == '[') {
    std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    r.host = text.substr(1, end - 1);
    colon = end + 1;
    if (colon >= text.size() || text[colon] != ':') return std::nullopt;
    if (r.host.find(':') == std::string_view::npos) return std::nullopt;  // brackets are for IPv6
  } else {
    colon = text.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    r.host = text.substr(0, colon);
  }
  r.port = text.substr(colon + 1);
  if (std::optional<std::uint16_t> port = parse_port(r.port)) {
    r.number = *port;
  } else if (!may_be_service(r.port)) {
    return std::nullopt;
  } else {
    r.port_is_name = true;
  }
  if (!r.host.empty() && !parse_ip(r.host, 0) && !may_be_name(r.host)) return std::nullopt;
  return r;
}

endpoint endpoint::parse(std::string_view text, std::error_code& ec) {
  ec.clear();
  if (std::optional<host_port> a = split_host_port(text); a && !a->port_is_name) {
    if (std::optional<endpoint> e = parse_ip(a->host, a->number)) return *e;
  }
  ec = system_error_code(EINVAL);
  return {};
}

endpoint endpoint::parse(std::string_view text) {
  std::error_code ec;
  endpoint e = parse(text, ec);
  throw_if(ec, "weft: parse address", text);
  return e;
}

std::optional<endpoint> unix_endpoint(std::string_view path) noexcept {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  bool abstract = !path.empty() && path.front() == '@';
  const std::size_t needed = path.size() + (abstract ? 0 : 1);  // a path ends with a NUL
  if (path.empty() || needed > sizeof a.sun_path || (!abstract && path.find('\0') != std::string_view::npos)) {
    return std::nullopt;
  }
  std::memcpy(a.sun_path, path.data(), path.size());
  if (abstract) a.sun_path[0] = '\0';
  return endpoint::from_native(&a, unix_header + needed);
}

endpoint wildcard(bool v6, std::uint16_t port) noexcept {
  if (v6) {
    sockaddr_in6 a{};
    a.sin6_family = AF_INET6;
    a.sin6_port = htons(port);
    return from(a);
  }
  endpoint e;
  e.set_port(port);
  return e;
}

endpoint loopback(bool v6, std::uint16_t port) noexcept {
  if (v6) {
    sockaddr_in6 a{};
    a.sin6_family = AF_INET6;
    a.sin6_port = htons(port);
    a.sin6_addr.s6_addr[15] = 1;
    return from(a);
  }
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return from(a);
}

}  // namespace weft::net
