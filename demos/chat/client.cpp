#include "client.hpp"

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

// Writes the lines that the hub has for the client, several at once if several are there, until the hub closes the
// outbox or the client is gone.
void write_lines(weft::net::tcp_stream& peer, const mailbox& mail) {
  constexpr std::size_t enough = 16 * 1024;
  std::error_code ec;
  const auto write = [&](const std::string& text) {
    peer.set_write_deadline(clock::now() + 10s, ec);
    peer.write(text, ec);
  };
  std::string lines, more;
  while (!ec && mail.outbox.recv(lines)) {
    while (lines.size() < enough && mail.outbox.try_recv(more) == weft::recv_result::value) lines += more;
    write(lines);
  }
  if (!ec && mail.last_word.try_recv(more) == weft::recv_result::value) write(more);
  peer.close();  // this also ends the reader
}

// Lines for a slow client should wait in its outbox, where we see them, and not in megabytes of kernel buffers.
void shrink_send_buffer(const weft::net::tcp_stream& peer) {
  const int bytes = 32 * 1024;
  ::setsockopt(peer.native_handle(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

}  // namespace

void serve_client(weft::net::tcp_stream& peer, const weft::chan<event>& to_hub, std::size_t queue) {
  static std::atomic<client_id> last_id{0};
  const client_id me = ++last_id;
  shrink_send_buffer(peer);

  const mailbox mail(queue);
  const weft::task<void> writer = weft::spawn({.name = "writer"}, [&] { write_lines(peer, mail); });
  to_hub.send(arrived{me, mail});

  line_reader lines(peer);
  while (std::optional<std::string> line = lines.next()) {
    to_hub.send(said{me, std::move(*line)});
    mail.turn.recv();  // if it is closed, we still read on, so that no reset destroys the last word
  }
  to_hub.send(left{me});
}  // ~task waits for the writer, which ends when the hub has closed the outbox

}  // namespace demo::chat
