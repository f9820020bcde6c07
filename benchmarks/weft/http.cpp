// HTTP over loopback: the server of demos/http, and clients that send the bytes of a prepared request. One operation: a
// request and its answer.
#include <weft/context.hpp>
#include <weft/go.hpp>

#include <stdexcept>
#include <string_view>

#include "benchmarks/support/bench.hpp"
#include "benchmarks/weft/connections.hpp"
#include "demos/http/connection.hpp"

namespace {

constexpr std::string_view request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view body = "Hello, World!\n";

void answer(const demo::http::request&, demo::http::response_writer& out, const demo::stop_stages&) {
  out.send(200, "text/plain", body);
}

weft::net::endpoint start_server() {
  auto listener = weft::net::tcp_listener::bind("127.0.0.1:0");
  auto at = listener.local_endpoint();
  weft::go([l = std::move(listener)]() mutable {
    static const demo::http::settings settings;
    static const demo::http::router router = answer;
    static const demo::stop_stages never{weft::background(), weft::background()};
    for (;;) {
      weft::go([s = l.accept()]() mutable {
        try {
          demo::http::connection(s, settings, router, never).serve();
        } catch (const std::system_error&) {}
      });
    }
  });
  return at;
}

void get(weft::net::tcp_stream& s) {
  s.write(std::as_bytes(std::span(request)));
  std::array<char, 1024> buffer;
  for (std::size_t have = 0;;) {
    std::size_t n = s.read(std::as_writable_bytes(std::span(buffer).subspan(have)));
    if (n == 0) throw std::runtime_error("no answer");
    have += n;
    std::string_view got(buffer.data(), have);
    if (got.find("\r\n\r\n") != got.npos && got.ends_with(body)) return;
  }
}

void http_on(bench::job& j, std::size_t connections, std::size_t requests) {
  bench::streams(start_server(), bench::job::connections(connections)).talk(j, requests, get);
}

const bench::workloads here{
    {"http", [](bench::job& j) { http_on(j, 1, 50'000); }},
    {"http_64", [](bench::job& j) { http_on(j, 64, 50'000); }},
    {"http_1k", [](bench::job& j) { http_on(j, 1000, 100'000); }},
    {"http_10k", [](bench::job& j) { http_on(j, 10'000, 200'000); }},
};

}  // namespace
