// Ends the connection under a WebSocket.

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
    // A timer sets the deadline after 5 s. It is not set from the start, since the user's own may be earlier.
    func_timer limit = after_func(5s, [&s] {
      std::error_code closed;
      s.set_read_deadline((time_point::min)(), closed);
    });
    struct stopper {
      func_timer& limit;
      ~stopper() { limit.stop_and_wait(); }  // f refers to s, so this must happen even if read throws
    } stop{limit};
    std::array<std::byte, 2048> rest;
    while (s.read(rest, ec) > 0) {}
  }
  if (!server && !ec) s.shutdown_write(ec);
  s.close();
  return ec;
}

}  // namespace weft::net::detail
