#include "connection.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace demo::http {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

void connection::serve() {
  try {
    do {
      if (!read_request()) return;
      const bool body_unread = request_.has_body && request_.wants_continue;
      out_.begin({
          .head_only = request_.verb == method::head,
          .keep_alive = request_.keep_alive && !body_unread && !stop_.asked.err(),
          .version = request_.version,
      });
      answer_(request_, out_, stop_);
    } while (out_.keep_alive());
  } catch (const bad_request& e) {
    out_.begin({.head_only = request_.verb == method::head, .keep_alive = false});
    out_.send_error(e.status, e.what());
  }
  out_.flush();
  linger();
}

// Reads a request, including its body. False: no more requests come. Throws bad_request.
bool connection::read_request() {
  request_parser parser(request_, settings_.size);
  std::optional<weft::time_point> begins_by, due;  // set when we first have to wait, for its first byte or for the rest

  while (!parser.done()) {
    // A client that asks before it sends a body (Expect: 100-continue) gets the final answer instead: we have no use
    // for the body.
    if (parser.head_done() && request_.wants_continue) break;

    // Some clients send an empty line after a request.
    while (!parser.begun() && buffered().starts_with("\r\n")) consume(2);

    const bool half_an_empty_line = !parser.begun() && buffered() == "\r";
    if (!buffered().empty() && !half_an_empty_line) {
      const std::size_t taken = parser.put(buffered());
      consume(taken);
      if (taken > 0) continue;
    }
    if (!parser.begun()) {
      if (!begins_by) begins_by = clock::now() + settings_.idle_timeout;
      if (!wait_for_request(*begins_by)) return false;
    } else {
      if (!due) due = clock::now() + settings_.request_timeout;
      if (!wait_for_rest(*due)) return false;
    }
  }
  return true;
}

bool connection::wait_for_request(weft::time_point due) {
  std::error_code ec;
  return fill(due, ec) > 0;
}

bool connection::wait_for_rest(weft::time_point due) {
  std::error_code ec;
  if (fill(due, ec) > 0) return true;
  if (stop_.asked.err()) return false;
  if (ec == std::errc::timed_out) throw bad_request(408, "the request took too long to come");
  if (!ec) throw bad_request(400, "the request ends early");
  throw std::system_error(ec);
}

// Reads what has come, or waits for it. 0: the stream has ended, ec is set, or the server stops.
std::size_t connection::fill(weft::time_point deadline, std::error_code& ec) {
  out_.flush();  // there is nothing to parse, so the client waits for us

  std::copy(in_.begin() + first_, in_.begin() + last_, in_.begin());
  last_ -= std::exchange(first_, 0);
  if (last_ == in_.size()) throw bad_request(400, "a line is too long");

  // In this order: a stop that comes later finds this deadline and moves it; one that came before is seen here.
  peer_.set_read_deadline(deadline);
  if (stop_.asked.err()) return 0;

  const std::size_t n = peer_.read(std::span(in_).subspan(last_), ec);
  last_ += n;
  return n;
}

// If we closed while the client still sends, its system would drop our last answer unread. So we end only our side, and
// read on for a moment: a short one if the server is to stop.
void connection::linger() {
  peer_.shutdown_write();
  peer_.set_read_deadline(clock::now() + (stop_.asked.err() ? 100ms : 1s));
  while (peer_.read(in_) > 0) {}
}

}  // namespace demo::http
