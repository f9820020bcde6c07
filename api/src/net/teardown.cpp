// The end of a WebSocket over a stream.

#include <weft/net.hpp>
#include <weft/time.hpp>

#include <array>
#include <chrono>
#include <system_error>

namespace weft::net::detail {

std::error_code tear_down(stream& s, bool server) {
  using namespace std::chrono_literals;
  std::error_code ec;
  if (server) s.shutdown_write(ec);
  if (!ec) {
    // Not by a deadline from the start: the user's own may be earlier.
    func_timer limit = after_func(5s, [&s] {
      std::error_code closed;
      s.set_read_deadline((time_point::min)(), closed);
    });
    struct stopper {
      func_timer& limit;
      ~stopper() { limit.stop_and_wait(); }  // also if there is no memory to wait with: it refers to s
    } stop{limit};
    std::array<std::byte, 2048> rest;
    while (s.read(rest, ec) > 0) {}
  }
  if (!server && !ec) s.shutdown_write(ec);
  s.close();
  return ec;
}

}  // namespace weft::net::detail
