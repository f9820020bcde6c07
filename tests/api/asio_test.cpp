// weft's streams used as streams of Boost.Asio and Beast. Here weft's header comes first; in asio_include_order.cpp,
// Boost's do.
#include <weft/weft.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/completion_condition.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_cat.hpp>
#include <boost/beast/core/buffers_prefix.hpp>
#include <boost/beast/core/buffers_suffix.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/multi_buffer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include "tests/support/catch.hpp"

#include <array>
#include <list>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace ws = beast::websocket;
using namespace std::chrono_literals;
using boost::system::error_code;
using weft::net::tcp_listener;
using weft::net::tcp_stream;
using weft::net::unix_stream;

static_assert(beast::is_sync_stream<tcp_stream>::value);
static_assert(beast::is_sync_stream<unix_stream>::value);
static_assert(!beast::is_async_read_stream<tcp_stream>::value && !beast::is_async_write_stream<tcp_stream>::value);
static_assert(std::is_same_v<beast::lowest_layer_type<ws::stream<tcp_stream>>, tcp_stream>);

// A const buffer cannot be read into.
template <class B>
concept can_be_read_into = requires(tcp_stream& s, const B& b, error_code& ec) {
  s.read_some(b);
  s.read_some(b, ec);
};
static_assert(can_be_read_into<asio::mutable_buffer> && can_be_read_into<std::vector<asio::mutable_buffer>>);
static_assert(!can_be_read_into<asio::const_buffer> && !can_be_read_into<std::vector<asio::const_buffer>>);
static_assert(!can_be_read_into<std::vector<std::string>> && !can_be_read_into<int>);

// A buffer type of the user's own, which Asio's sequences may have as elements.
struct text {
  std::string s;
  operator asio::const_buffer() const { return asio::buffer(s); }
};

// Beast's parsers and its WebSocket put large objects on the stack.
constexpr std::size_t stack = 1 << 20;

struct connection {
  tcp_stream near, far;
};

connection connect() {
  tcp_listener l = tcp_listener::bind("127.0.0.1:0");
  tcp_stream near = tcp_stream::connect(l.local_endpoint());
  return {std::move(near), l.accept()};
}

template <class F>
void run(F f) {
  weft::run(std::move(f), {.stack_size = stack});
}

std::string read_some(tcp_stream& s) {
  std::array<char, 100> b;
  return {b.data(), s.read_some(asio::buffer(b))};
}

}  // namespace

TEST_CASE("asio: read, write and read_until") {
  run([] {
    auto c = connect();
    CHECK(asio::write(c.near, asio::buffer("hello\nrest", 10)) == 10);
    asio::streambuf line;
    CHECK(asio::read_until(c.far, line, '\n') == 6);
    CHECK(c.far.write_some(asio::buffer("z", 1)) == 1);
    CHECK(read_some(c.near) == "z");

    c.near.write("abcd");
    c.near.close();
    error_code ec;
    asio::streambuf rest;
    std::size_t n = asio::read(c.far, rest, asio::transfer_all(), ec);
    CHECK(line.size() + n == 14);
    CHECK(ec == asio::error::eof);
  });
}

TEST_CASE("asio: sequences of buffers") {
  run([] {
    auto c = connect();
    error_code ec = asio::error::eof;
    std::array<asio::const_buffer, 3> three{asio::buffer("ab", 2), asio::const_buffer(), asio::buffer("cd", 2)};
    CHECK(asio::write(c.near, three, ec) == 4);
    CHECK(!ec);
    char x[1], y[3];
    std::list<asio::mutable_buffer> two{asio::buffer(x), asio::buffer(y)};
    CHECK(asio::read(c.far, two, ec) == 4);
    CHECK(!ec);
    CHECK(x[0] == 'a');
    CHECK(std::string(y, 3) == "bcd");

    // Views whose iterators create the buffers on the fly.
    CHECK(c.near.write_some(beast::buffers_cat(asio::buffer("one", 3), three), ec) == 7);
    CHECK(read_some(c.far) == "oneabcd");
    CHECK(c.near.write_some(beast::buffers_prefix(3, three)) == 3);
    CHECK(read_some(c.far) == "abc");
    beast::buffers_suffix<std::array<asio::const_buffer, 3>> suffix(three);
    suffix.consume(3);
    CHECK(c.near.write_some(suffix) == 1);
    CHECK(read_some(c.far) == "d");

    // Elements that are not buffers but convert to one.
    CHECK(c.near.write_some(text{"text"}) == 4);
    CHECK(c.near.write_some(std::vector<text>{{"a"}, {""}, {"line"}}, ec) == 5);
    std::array<char, 9> all;
    CHECK(asio::read(c.far, asio::buffer(all)) == 9);
    CHECK(std::string(all.data(), 9) == "textaline");

    // More than one attempt takes, and more than the socket holds.
    beast::multi_buffer in;
    std::string bytes(3'000'000, 'm');
    auto reader = weft::spawn({.stack_size = stack}, [&] { return asio::read(c.far, in.prepare(bytes.size())); });
    std::vector<asio::const_buffer> many;
    for (std::size_t i = 0; i < 3000; ++i) many.push_back(asio::buffer(bytes.data() + 1000 * i, 1000));
    CHECK(c.near.write_some(many) <= 16'000);
    c.near.close();
    CHECK_THROWS_AS(reader.join(), boost::system::system_error);
  });
}

TEST_CASE("asio: an empty sequence is done at once") {
  run([] {
    auto c = connect();
    error_code ec = asio::error::eof;
    CHECK(c.near.read_some(std::vector<asio::mutable_buffer>(), ec) == 0);
    CHECK(!ec);
    CHECK(c.near.read_some(asio::mutable_buffer()) == 0);
    CHECK(c.near.write_some(std::array<asio::const_buffer, 2>(), ec) == 0);
    CHECK(!ec);
  });
}

TEST_CASE("asio: what weft takes as its own stays so") {
  run([] {
    auto c = connect();
    std::error_code ec;
    CHECK(c.near.write_some("abc", ec) == 3);
    CHECK(c.near.write_some(std::string("def")) == 3);
    std::array<char, 6> b;
    CHECK(c.far.read_exactly(b) == 6);
    c.near.shutdown_write();
    CHECK(c.far.read_some(b, ec) == 0);
    CHECK(ec == weft::net::error::eof);
    // With Asio's buffers, too.
    CHECK(c.far.read_some(asio::buffer(b), ec) == 0);
    CHECK(ec == weft::net::error::eof);
  });
}

TEST_CASE("asio: errors") {
  run([] {
    auto c = connect();
    std::array<char, 10> b;
    error_code ec;

    c.near.set_read_deadline(weft::time_point::clock::now() + 2ms);
    CHECK(c.near.read_some(asio::buffer(b), ec) == 0);
    CHECK(ec == asio::error::timed_out);
    CHECK(ec == boost::system::errc::timed_out);
    c.near.set_deadline((weft::time_point::max)());

    auto reader = weft::spawn([&] {
      error_code e;
      c.near.read_some(asio::buffer(b), e);
      return e;
    });
    while (weft::runtime_stats().waiting == 0) weft::yield();
    c.near.close();
    CHECK(reader.join() == asio::error::operation_aborted);

    c.near.read_some(asio::buffer(b), ec);
    CHECK(ec == asio::error::bad_descriptor);
    c.near.write_some(asio::buffer(b), ec);
    CHECK(ec == asio::error::bad_descriptor);

    CHECK(c.far.read_some(asio::buffer(b), ec) == 0);
    CHECK(ec == asio::error::eof);
    std::error_code thrown;
    try {
      c.far.read_some(asio::buffer(b));
    } catch (const std::system_error& e) {
      thrown = e.code();
    }
    CHECK(thrown == weft::net::error::eof);

    // Unread data makes close() a reset.
    auto d = connect();
    asio::write(d.near, asio::buffer("x", 1));
    CHECK(!weft::io::wait_readable(d.far.native_handle()));
    d.far.close();
    d.near.read_some(asio::buffer(b), ec);
    CHECK(ec == asio::error::connection_reset);
    d.near.write_some(asio::buffer(b), ec);
    CHECK(ec == asio::error::broken_pipe);
    beast::close_socket(beast::get_lowest_layer(d.near));
    CHECK(!d.near.is_open());
  });
}

TEST_CASE("beast: HTTP both ways") {
  run([] {
    auto c = connect();
    auto server = weft::spawn({.stack_size = stack}, [&] {
      beast::flat_buffer buffer;
      http::request<http::string_body> q;
      http::read(c.far, buffer, q);
      http::response<http::string_body> r{http::status::ok, q.version()};
      r.body() = "you said " + q.body();
      r.prepare_payload();
      http::write(c.far, r);
      c.far.shutdown_write();
    });
    http::request<http::string_body> q{http::verb::post, "/", 11};
    q.set(http::field::host, "test");
    q.body() = std::string(100'000, 'b');
    q.prepare_payload();
    http::write(c.near, q);
    beast::flat_buffer buffer;
    http::response<http::string_body> r;
    http::read(c.near, buffer, r);
    CHECK(r.body() == "you said " + q.body());
    server.join();

    error_code ec;
    http::read(c.near, buffer, r, ec);
    CHECK(ec == http::error::end_of_stream);
  });
}

TEST_CASE("beast: WebSocket") {
  run([] {
    auto c = connect();
    auto server = weft::spawn({.stack_size = stack}, [&] {
      ws::stream<tcp_stream> w{std::move(c.far)};
      w.accept();
      for (;;) {
        beast::flat_buffer message;
        error_code ec;
        w.read(message, ec);
        if (ec) return ec;
        w.text(w.got_text());
        w.write(message.data());
      }
    });
    ws::stream<tcp_stream> w{std::move(c.near)};
    w.handshake("localhost", "/");
    for (std::size_t size : {4, 100'000}) {
      std::string said(size, 'p');
      w.write(asio::buffer(said));
      beast::flat_buffer heard;
      w.read(heard);
      CHECK(beast::buffers_to_string(heard.data()) == said);
    }
    w.close(ws::close_code::normal);
    CHECK(!w.next_layer().is_open());
    CHECK(server.join() == ws::error::closed);
  });
}

TEST_CASE("beast: the end of a WebSocket waits for the peer until the deadline") {
  run([] {
    for (beast::role_type role : {beast::role_type::client, beast::role_type::server}) {
      auto c = connect();
      c.far.write("unread");
      c.near.set_deadline(weft::time_point::clock::now() + 5ms);
      error_code ec;
      using ws::teardown;  // as Beast calls it
      teardown(role, c.near, ec);
      CHECK(ec == asio::error::timed_out);
      CHECK(!c.near.is_open());
    }
  });
}

TEST_CASE("beast: WebSocket over a unix socket") {
  run([] {
    auto [near, far] = unix_stream::pair();
    auto server = weft::spawn({.stack_size = stack}, [&far = far] {
      ws::stream<unix_stream> w{std::move(far)};
      w.accept();
      beast::flat_buffer message;
      w.read(message);
      w.close(ws::close_code::normal);
      return beast::buffers_to_string(message.data());
    });
    ws::stream<unix_stream> w{std::move(near)};
    w.handshake("localhost", "/");
    w.write(asio::buffer("hello", 5));
    beast::flat_buffer none;
    error_code ec;
    w.read(none, ec);
    CHECK(ec == ws::error::closed);
    CHECK(server.join() == "hello");
  });
}
