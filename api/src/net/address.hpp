// Addresses as text.
#pragma once

#include "runtime/clock.hpp"
#include "weft/net.hpp"

#include <optional>

namespace weft::net {

// "host:port" taken apart. The members are views into the text.
struct host_port {
  std::string_view host;  // may be empty; without brackets
  std::string_view port;
  std::uint16_t number = 0;
  bool port_is_name = false;
};

// Each returns nothing if the text is malformed.
std::optional<host_port> split_host_port(std::string_view text);
std::optional<std::uint16_t> parse_port(std::string_view s) noexcept;
inline bool is_ip(const endpoint& e) noexcept { return e.is_v4() || e.is_v6(); }
bool may_be_name(std::string_view s);              // a host name
bool may_be_service(std::string_view s) noexcept;  // a service name, not a number
std::optional<endpoint> parse_ip(std::string_view s, std::uint16_t port);
std::optional<endpoint> unix_endpoint(std::string_view path) noexcept;
endpoint wildcard(bool v6, std::uint16_t port) noexcept;
endpoint loopback(bool v6, std::uint16_t port) noexcept;

// resolve_address returns the addresses to try for "host:port", in order; never empty unless ec is set. An empty host
// means every interface for purpose::bind, and this machine for purpose::connect. A deadline of rt::forever means none.
// If the deadline passes, or ctx is cancelled (then ec is ctx.err()), the look-up goes on, but nobody waits for it.
enum class purpose : bool { connect, bind };
enum class transport : std::uint8_t { tcp, udp, any };  // whose names of ports; `any`: TCP's first
std::vector<endpoint> resolve_address(std::string_view text, purpose p, transport t, rt::nanos deadline,
                                      const context& ctx, std::error_code& ec);

}  // namespace weft::net
