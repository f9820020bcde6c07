#include "request.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>

#include "url.hpp"

namespace demo::http {

namespace beast = boost::beast;
using beast::http::field;
using beast::http::verb;

namespace {
std::string_view to_std(beast::string_view s) { return {s.data(), s.size()}; }
}  // namespace

void request::clear() {
  verb = method::other;
  path.clear();
  query.clear();
  wants_continue = has_body = false;
}

request_parser::request_parser(request& into, const limits& l) : request_(into), head_limit_(l.head) {
  request_.clear();
  header_limit(static_cast<std::uint32_t>(l.head));
  body_limit(l.body);
}

std::size_t request_parser::put(std::string_view input) {
  // What is left of a chunked body is never shorter than its last chunk, so a shorter input has to wait for more. Beast
  // 1.74 asserts this when it is called a second time for the last chunk.
  constexpr std::size_t last_chunk = std::string_view("0\r\n\r\n").size();
  if (head_done() && chunked() && input.size() < last_chunk) return 0;

  error_code ec;
  const bool in_head = !head_done();
  const std::size_t taken = base::put(boost::asio::const_buffer(input.data(), input.size()), ec);
  if (ec && ec != beast::http::error::need_more) refuse(ec);

  if (in_head) {
    // Beast counts only what it sees in one call. We count the fields that trickle in.
    head_size_ += taken;
    if (head_size_ + (head_done() ? 0 : input.size() - taken) > head_limit_) refuse(beast::http::error::header_limit);
    if (head_done()) finish_head();
  }
  return taken;
}

void request_parser::finish_head() {
  if (hosts_ > 1 || (request_.version == 11 && hosts_ == 0))
    throw bad_request(400, "exactly one Host field is required");
  if (transfer_encoding_ && (!chunked() || request_.version == 10)) throw bad_request(400, "unknown transfer encoding");
  if (unknown_expectation_) throw bad_request(417, "only 100-continue can be expected");
  request_.keep_alive = keep_alive();
  request_.has_body = !is_done();
  eager(true);  // go through the body without a stop after each chunk
}

void request_parser::refuse(error_code why) {
  using beast::http::error;
  if (why == error::header_limit) throw bad_request(431, "the request's head is too large");
  if (why == error::body_limit) throw bad_request(413, "the request's body is too large");
  throw bad_request(400, "malformed request");
}

void request_parser::on_request_impl(verb v, view, view target, int version, error_code&) {
  request_.verb = v == verb::get ? method::get : v == verb::head ? method::head : method::other;
  request_.version = version;
  // Other methods have other forms of targets ("OPTIONS *"); they are refused anyway.
  if (request_.verb != method::other && !split_target(to_std(target), request_.path, request_.query)) {
    throw bad_request(400, "malformed target");
  }
}

void request_parser::on_field_impl(field name, view, view value, error_code&) {
  if (head_done()) return;  // a field of the trailer behind a chunked body
  switch (name) {
    case field::host: ++hosts_; break;
    case field::transfer_encoding: transfer_encoding_ = true; break;
    case field::expect:
      if (beast::iequals(value, "100-continue")) {
        request_.wants_continue = true;
      } else {
        unknown_expectation_ = true;
      }
      break;
    default: break;
  }
}

}  // namespace demo::http
