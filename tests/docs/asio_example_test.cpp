// The example of docs/io.md that needs Boost's headers.
#include <weft/weft.hpp>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "tests/support/catch.hpp"

namespace {

// [beast]
namespace http = boost::beast::http;

void serve(weft::net::tcp_stream s) {
  boost::beast::flat_buffer buffer;
  http::request<http::string_body> request;
  boost::system::error_code ec;
  http::read(s, buffer, request, ec);
  if (ec) return;  // the client is gone, or sent what is no request
  http::response<http::string_body> response(http::status::ok, request.version());
  response.body() = "you asked for " + std::string(request.target());
  response.prepare_payload();
  http::write(s, response, ec);
}

void accept_all(weft::net::tcp_listener& l) {
  std::error_code ec;
  for (;;) {
    weft::net::tcp_stream s = l.accept(ec);
    if (ec) return;  // closed
    weft::go({.stack_size = 1 << 20}, [s = std::move(s)]() mutable { serve(std::move(s)); });
  }
}
// [/beast]

}  // namespace

TEST_CASE("docs: an HTTP server with Beast") {
  weft::run([] {
    auto l = weft::net::tcp_listener::bind("127.0.0.1:0");
    auto acceptor = weft::spawn([&l] { accept_all(l); });
    auto s = weft::net::tcp_stream::connect(l.local_endpoint());
    s.write("GET /docs HTTP/1.0\r\n\r\n");
    std::string answer(1000, '\0');
    std::error_code ec;
    answer.resize(s.read_exactly(answer, ec));
    CHECK(ec == weft::net::error::eof);
    CHECK(answer.find("you asked for /docs") != std::string::npos);
    l.close();
    acceptor.join();
    while (weft::num_goroutines() > 1) weft::yield();
  });
}
