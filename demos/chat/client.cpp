#include "client.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <sys/socket.h>

#include <weft/weft.hpp>

#include "text.hpp"

namespace demo::chat {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

namespace {

// Lets a client say about 1 MB a second: who pastes a book waits, instead of flooding everybody's outbox.
class pace {
 public:
  void keep(std::size_t bytes) {
    const auto now = clock::now();
    free_at_ = std::max(free_at_, now - 10ms) + (64 + bytes) * 1us;
    if (free_at_ > now) weft::sleep_until(free_at_);
  }

 private:
  weft::time_point free_at_{};
};

// Writes what comes from the hub, several lines at once if they are there, until the hub is done with the client or the
// client is with us.
void write_lines(weft::net::tcp_stream& peer, const line_chan& outbox) {
  constexpr std::size_t enough = 16 * 1024;
  std::error_code ec;
  std::string lines, more;
  while (!ec && outbox.recv(lines)) {
    while (lines.size() < enough && outbox.try_recv(more) == weft::recv_result::value) lines += more;
    peer.set_write_deadline(clock::now() + 10s, ec);
    peer.write(lines, ec);
  }
  peer.close();  // and so ends the reader
}

// What waits for a slow client should wait in its outbox, where we see it, and not in megabytes of the system's memory.
void shrink_send_buffer(const weft::net::tcp_stream& peer) {
  const int bytes = 32 * 1024;
  ::setsockopt(peer.native_handle(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

}  // namespace

void serve_client(weft::net::tcp_stream& peer, const weft::chan<event>& to_hub, std::size_t queue) {
  static std::atomic<client_id> last_id{0};
  const client_id me = ++last_id;
  shrink_send_buffer(peer);

  const line_chan outbox(queue + 1);
  to_hub.send(arrived{me, outbox});
  const weft::task<void> writer = weft::spawn({.name = "writer"}, [&peer, outbox] { write_lines(peer, outbox); });

  line_reader lines(peer);
  pace pace;
  while (std::optional<std::string> line = lines.next()) {
    pace.keep(line->size());
    to_hub.send(said{me, std::move(*line)});
  }
  to_hub.send(left{me});
}  // waits for the writer, which ends when the hub has closed the outbox

}  // namespace demo::chat
