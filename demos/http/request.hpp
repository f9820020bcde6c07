// An HTTP request and its parser: Boost.Beast's, fed from the connection's buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/version.hpp>

namespace demo::http {

struct limits {
  std::size_t head = 8 * 1024;  // bytes of request line and fields
  std::size_t body = 1024 * 1024;
};

// Thrown for a bad request: a status code and a line of text, which the client gets as the last answer on its
// connection.
struct bad_request : std::runtime_error {
  bad_request(int status_code, const char* text) : std::runtime_error(text), status(status_code) {}
  int status;
};

enum class method { get, head, other };

struct request {
  method verb = method::other;
  int version = 11;
  std::string path;   // decoded
  std::string query;  // what follows the '?', as it came
  bool keep_alive = false;
  bool wants_continue = false;  // the client sends the body only if we ask for it
  bool has_body = false;

  void clear();  // keeps the memory
};

// Parses one request. Its body is counted and thrown away: nothing here has a use for one.
class request_parser : boost::beast::http::basic_parser<true> {
 public:
  request_parser(request& into, const limits& l);

  // Parses what it can of `input` and returns how many bytes that was. The caller must offer the rest again, with more
  // behind it. Throws bad_request.
  std::size_t put(std::string_view input);

  bool begun() const { return got_some(); }
  bool head_done() const { return is_header_done(); }
  bool done() const { return is_done(); }

 private:
  using base = basic_parser<true>;
  using error_code = boost::beast::error_code;
  using view = boost::beast::string_view;
  using length = boost::optional<std::uint64_t>;

  void finish_head();
  [[noreturn]] static void refuse(error_code why);

  // Beast calls these as it parses.
  void on_request_impl(boost::beast::http::verb, view method, view target, int version, error_code&) override;
  void on_field_impl(boost::beast::http::field, view name, view value, error_code&) override;
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const length&, error_code&) override {}
  std::size_t on_body_impl(view body, error_code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, view body, error_code&) override { return body.size(); }
  void on_finish_impl(error_code&) override {}
  void on_response_impl(int, view, int, error_code&) override {}
#if BOOST_BEAST_VERSION >= 359  // Boost 1.90; earlier ones pass trailers to on_field_impl
  void on_trailer_field_impl(boost::beast::http::field, view, view, error_code&) override {}
#endif

  request& request_;
  std::size_t head_limit_;
  std::size_t head_size_ = 0;
  int hosts_ = 0;
  bool transfer_encoding_ = false;
  bool unknown_expectation_ = false;
};

}  // namespace demo::http
