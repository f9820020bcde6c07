// Sockets, on loopback only. Only the main goroutine uses Catch2's macros, which must not be used by several at once.
#include "tests/support/catch.hpp"

#include <weft/chan.hpp>
#include <weft/context.hpp>
#include <weft/go.hpp>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/select.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>
#include <weft/time.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>
#include <memory>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <unordered_set>
#include <vector>

using namespace std::chrono_literals;
using weft::net::tcp_listener;
using weft::net::tcp_stream;
using weft::net::udp_socket;
using weft::net::unix_listener;
using weft::net::unix_stream;

namespace {

using steady = std::chrono::steady_clock;

std::string address_of(const tcp_listener& l) { return l.local_endpoint().to_string(); }

struct connection {
  tcp_stream client, server;
};

connection connect_pair() {
  auto l = tcp_listener::bind("127.0.0.1:0");
  auto client = tcp_stream::connect(address_of(l), 5s);
  return {std::move(client), l.accept()};
}

std::string text_of(tcp_stream& s) {
  std::string all;
  char buf[4096];
  while (std::size_t n = s.read(buf)) all.append(buf, n);
  return all;
}

std::error_code code_of(auto&& f) {
  try {
    f();
  } catch (const std::system_error& e) {
    return e.code();
  }
  return {};
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

// Waits until `n` goroutines are parked.
void until_waiting(std::uint64_t n) {
  while (weft::runtime_stats().waiting < n) weft::sleep(1ms);
}

// Fills the buffers of both sockets, so that the next write would wait. The system moves data on, and enlarges the
// buffers for a while; so they are full only when nothing more goes in for some time.
std::size_t fill(tcp_stream& s) {
  std::vector<char> block(64 * 1024, 'x');
  std::size_t total = 0;
  for (int in_vain = 0; in_vain < 3;) {
    std::error_code ec;
    s.set_write_deadline(steady::now() + 20ms);
    std::size_t n = s.write(block, ec);
    CHECK((n == block.size() || ec == std::errc::timed_out));
    in_vain = n == 0 ? in_vain + 1 : 0;
    total += n;
  }
  s.set_write_deadline(weft::time_point::max());
  return total;
}

// Starts a goroutine that makes one call and sends its outcome.
template <class F>
weft::chan<std::error_code> in_background(F f) {
  weft::chan<std::error_code> done{1};
  weft::go([f = std::move(f), done]() mutable {
    std::error_code ec;
    f(ec);
    done.send(ec);
  });
  return done;
}

std::error_code outcome(const weft::chan<std::error_code>& c) {
  std::error_code ec;
  REQUIRE(c.recv_for(ec, 10s) == weft::recv_result::value);
  return ec;
}

// The ranges that readv and writev accept: none whose elements are gone once the range has been passed.
template <class R>
constexpr bool writes = requires(tcp_stream s, R r, std::error_code ec) {
  s.writev(static_cast<R&&>(r));
  s.writev(static_cast<R&&>(r), ec);
};
template <class R>
constexpr bool reads = requires(tcp_stream s, R r, std::error_code ec) {
  s.readv(static_cast<R&&>(r));
  s.readv(static_cast<R&&>(r), ec);
};
template <class T>
using made_of = std::ranges::transform_view<std::span<int>, T (*)(int)>;
static_assert(writes<std::vector<std::string>&> && reads<std::vector<std::string>&>);
static_assert(writes<const std::vector<std::string>&> && !reads<const std::vector<std::string>&>);
static_assert(writes<std::vector<std::string>> && writes<std::vector<const char*>> && writes<std::list<std::string>&>);
static_assert(writes<made_of<std::string&>> && writes<made_of<const std::vector<char>&>> &&
              reads<made_of<std::string&>>);
static_assert(writes<made_of<std::string_view>> && writes<made_of<const char*>> && writes<made_of<std::span<char>>> &&
              writes<made_of<weft::net::const_buffer>> && writes<made_of<weft::net::mutable_buffer>>);
static_assert(reads<made_of<std::span<char>>> && reads<made_of<weft::net::mutable_buffer>>);
static_assert(!writes<made_of<std::string>> && !writes<made_of<std::vector<char>>> &&
              !writes<made_of<std::array<char, 4>>> && !reads<made_of<std::array<char, 4>>>);
static_assert(!writes<std::ranges::istream_view<std::string>> && !writes<weft::recv_chan<std::string>&> &&
              !writes<weft::chan<std::string>&> && !writes<weft::chan<std::string_view>&>);

}  // namespace

TEST_CASE("echo") {
  weft::run([] {
    auto l = tcp_listener::bind("127.0.0.1:0");
    CHECK(l.local_endpoint().port() != 0);
    CHECK(l.local_endpoint().address() == "127.0.0.1");
    CHECK(l.is_open());
    weft::task<void> server = weft::spawn([&] {
      tcp_stream s = l.accept();
      char buf[100];
      while (std::size_t n = s.read(buf)) s.write(std::string_view(buf, n));
    });
    auto c = tcp_stream::connect(address_of(l), 2s);
    CHECK(c.remote_endpoint() == l.local_endpoint());
    for (int i = 0; i < 100; ++i) {
      std::string message = "hello " + std::to_string(i);
      CHECK(c.write(message) == message.size());
      std::string answer(message.size(), '\0');
      CHECK(c.read_exactly(answer) == answer.size());
      CHECK(answer == message);
    }
    c.close();
    CHECK(!c.is_open());
    server.join();
  });
}

TEST_CASE("kinds of buffers") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
    std::array<std::byte, 4> bytes{};
    std::vector<unsigned char> uchars(4);
    char chars[4];
    c.write("abcd");
    CHECK(s.read(std::span<std::byte>(bytes)) == 4);
    CHECK(bytes[3] == std::byte{'d'});
    c.write(std::as_bytes(std::span(bytes)));
    CHECK(s.read(std::span<char>(chars)) == 4);
    CHECK(std::string_view(chars, 4) == "abcd");
    c.write(std::string_view("efgh"));
    CHECK(s.read(uchars) == 4);
    CHECK(uchars[0] == 'e');
    CHECK(c.write(u8"ij") == 2);
    CHECK(s.read(chars) == 2);
    CHECK(c.write("") == 0);
    CHECK(c.write("kl\0mn") == 2);
    CHECK(s.read(chars) == 2);
    std::fill_n(chars, 4, 'x');  // text without a terminating zero
    CHECK(c.write(chars) == 4);
    CHECK(s.read(uchars) == 4);
    CHECK(s.read(std::span<char>()) == 0);
    CHECK(s.read_some(std::span<char>()) == 0);
  });
}

TEST_CASE("many connections at once") {
  weft::run([] {
    constexpr int connections = 300, rounds = 10;
    auto l = tcp_listener::bind("127.0.0.1:0");
    weft::task<void> server = weft::spawn([&] {
      std::error_code ec;
      for (;;) {
        tcp_stream s = l.accept(ec);
        if (ec) return;
        weft::go(
            [](tcp_stream t) {
              char buf[64];
              std::error_code e;
              while (std::size_t n = t.read(buf, e)) t.write(std::string_view(buf, n), e);
            },
            std::move(s));
      }
    });
    weft::chan<int> good{connections};
    for (int i = 0; i < connections; ++i) {
      weft::go([&, i] {
        auto c = tcp_stream::connect(address_of(l), 10s);
        int right = 0;
        for (int r = 0; r < rounds; ++r) {
          std::string m = std::to_string(i) + "/" + std::to_string(r);
          c.write(m);
          std::string a(m.size(), '\0');
          c.read_exactly(a);
          right += a == m;
        }
        good.send(right);
      });
    }
    int sum = 0;
    for (int i = 0; i < connections; ++i) sum += *good.recv();
    CHECK(sum == connections * rounds);
    l.close();
    server.join();
  });
}

TEST_CASE("half close: the other direction stays") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
    c.write("question");
    c.shutdown_write();
    CHECK(text_of(s) == "question");
    s.write("answer");
    s.close();
    CHECK(text_of(c) == "answer");
    CHECK(code_of([&] { c.write("more"); }) == std::errc::broken_pipe);
  });
}

TEST_CASE("the end of the stream") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
    c.write("abc");
    c.close();
    char buf[10];
    std::error_code ec;
    CHECK(s.read_exactly(buf, ec) == 3);
    CHECK(ec == weft::net::error::eof);
    CHECK(ec.message() == "End of stream");
    CHECK(s.read(buf, ec) == 0);
    CHECK(!ec);
    CHECK(s.read_some(buf, ec) == 0);
    CHECK(ec == weft::net::error::eof);
    CHECK(code_of([&] { s.read_exactly(buf); }) == weft::net::error::eof);
  });
}

// A read that got less than it asked for has emptied the socket, so the next one waits before it tries
// (api/src/net/receive.hpp).
TEST_CASE("after a read that got less than it asked for nothing is missed") {
  bool noticed = GENERATE(false, true);  // true: the poller has learned of the data before it is read
  weft::run([&] {
    auto streams = connect_pair();
    tcp_stream &c = streams.client, &s = streams.server;
    std::array<char, 4096> buf;
    auto read = [&] {
      if (noticed) weft::sleep(5ms);
      s.set_read_deadline(steady::now() + 5s);
      std::error_code ec;
      std::size_t n = s.read(buf, ec);
      return ec ? ec.message() : std::string(buf.data(), n);
    };
    c.write("abc");
    SECTION("more bytes") {
      for (int i = 0; i < 20; ++i) {
        CHECK(read() == "abc");
        c.write("abc");
      }
    }
    SECTION("the end, behind the last bytes") {
      c.close();
      CHECK(read() == "abc");
      CHECK(read() == "");
      CHECK(read() == "");
    }
    SECTION("the end of one direction, behind the last bytes") {
      c.shutdown_write();
      CHECK(read() == "abc");
      CHECK(read() == "");
    }
    SECTION("bytes behind urgent data") {
      REQUIRE(::send(c.native_handle(), "!", 1, MSG_OOB) == 1);
      c.write("de");
      std::string all;
      while (all.size() < 5) {
        std::string next = read();
        all += next;
        if (next.size() > 5) break;  // an error
      }
      CHECK(all == "abcde");
    }
    SECTION("the end, an error, and bytes behind urgent data, in the midst of what was asked for") {
      int what = GENERATE(0, 1, 2);
      char all[5];
      std::error_code ec;
      s.set_read_deadline(steady::now() + 5s);
      weft::task<std::size_t> waits;
      if (!noticed) {
        CHECK(s.read_exactly(std::span(all, 3), ec) == 3);
        waits = weft::spawn([&] { return s.read_exactly(all, ec); });
        weft::sleep(5ms);
        c.write("abc");
      }
      if (what == 0) c.close();
      if (what == 1) {
        weft::sleep(5ms);  // otherwise the reset would discard the bytes
        linger hard{1, 0};
        ::setsockopt(c.native_handle(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        c.close();
      }
      if (what == 2) {
        REQUIRE(::send(c.native_handle(), "!", 1, MSG_OOB) == 1);
        c.write("de");
      }
      if (noticed) weft::sleep(5ms);
      CHECK((noticed ? s.read_exactly(all, ec) : waits.join()) == (what == 2 ? 5 : 3));
      if (what == 0) CHECK(ec == weft::net::error::eof);
      if (what == 1) CHECK(ec == std::errc::connection_reset);
      if (what == 2) CHECK(!ec);
    }
    SECTION("bytes behind a wait that gave up") {
      CHECK(read() == "abc");
      s.set_read_deadline(steady::now() + 2ms);
      CHECK(code_of([&] { s.read(buf); }) == std::errc::timed_out);
      c.write("de");
      CHECK(read() == "de");
    }
    SECTION("a passed deadline counts although bytes are there") {
      CHECK(read() == "abc");
      c.write("de");
      if (noticed) weft::sleep(5ms);
      s.set_read_deadline(steady::now());
      CHECK(code_of([&] { s.read(buf); }) == std::errc::timed_out);
      CHECK(read() == "de");
    }
    SECTION("several buffers, and all of a buffer") {
      char a[2], b[2], all[2];
      std::array<std::span<std::byte>, 2> parts{std::as_writable_bytes(std::span(a)),
                                                std::as_writable_bytes(std::span(b))};
      CHECK(s.readv(parts) == 3);
      c.write("d");
      auto rest = in_background([&](std::error_code& e) { s.read_exactly(all, e); });
      weft::sleep(2ms);
      c.write("e");
      CHECK(!outcome(rest));
      CHECK(std::string(all, 2) == "de");
    }
  });
}

TEST_CASE("many short connections, each ended right behind its last bytes") {
  weft::run([] {
    auto l = tcp_listener::bind("127.0.0.1:0");
    constexpr int pairs = 4, each = 300;
    weft::wait_group wg;
    std::atomic<std::size_t> received{0};
    std::atomic<int> failed{0};
    for (int i = 0; i < pairs; ++i) {
      wg.go([&, i] {
        for (int k = 0; k < each; ++k) {
          auto c = tcp_stream::connect(l.local_endpoint());
          c.write(std::string(static_cast<std::size_t>(i + k) % 100 + 1, 'x'));
          if (k % 3 == 0) weft::yield();
        }
      });
      wg.go([&] {
        for (int k = 0; k < each; ++k) {
          wg.go([&, s = l.accept()]() mutable {
            s.set_read_deadline(steady::now() + 20s);
            std::array<char, 256> buf;
            std::error_code ec;
            while (std::size_t n = s.read(buf, ec)) received += n;
            if (ec) ++failed;
          });
        }
      });
    }
    wg.wait();
    std::size_t sent = 0;
    for (std::size_t i = 0; i < pairs; ++i) {
      for (std::size_t k = 0; k < each; ++k) sent += (i + k) % 100 + 1;
    }
    CHECK(failed == 0);
    CHECK(received == sent);
  });
}

TEST_CASE("one MiB, in pieces of every size") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &client = streams.client, &server = streams.server;
    tcp_stream& c = client;
    tcp_stream& s = server;
    std::string sent(1 << 20, '\0');
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 2654435761u >> 13);
    weft::task<std::size_t> writer = weft::spawn([&] {
      std::size_t n = c.write(sent);
      c.shutdown_write();
      return n;
    });
    std::string got;
    std::string buf(70000, '\0');
    for (std::size_t size = 1; std::size_t n = s.read(std::span<char>(buf.data(), size)); size = size * 7 % 69997) {
      got.append(buf, 0, n);
    }
    CHECK(writer.join() == sent.size());
    CHECK(got == sent);
  });
}

TEST_CASE("readv and writev") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
    // More buffers than go into one call, empty ones among them.
    std::vector<std::string> parts(200);
    std::vector<std::span<const std::byte>> views;
    std::string all;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i] = i % 5 == 0 ? "" : std::string(i * 7, static_cast<char>('a' + i % 26));
      views.push_back(std::as_bytes(std::span(parts[i])));
      all += parts[i];
    }
    CHECK(c.writev(views) == all.size());
    c.shutdown_write();
    std::string got(all.size(), '\0');
    s.read_exactly(got);
    CHECK(got == all);

    s.write("abcdef");
    std::array<std::byte, 2> first{};
    std::array<std::byte, 10> second{};
    std::array<std::span<std::byte>, 2> into{first, second};
    CHECK(c.readv(into) == 6);
    CHECK(second[3] == std::byte{'f'});
    CHECK(c.writev({}) == 0);

    // Lists and ranges of anything that is a buffer.
    std::string head = "ab";
    std::vector<char> body{'c', 'd'};
    std::error_code ec;
    CHECK(s.writev({head, body, "ef"}) == 6);
    CHECK(s.writev(std::vector<std::string_view>{"gh", "", "i"}, ec) == 3);
    CHECK(s.writev(std::vector<std::span<std::byte>>{first}) == 2);
    CHECK(c.readv({head, body}, ec) == 4);
    CHECK(head == "ab");
    CHECK(body[1] == 'd');
    std::vector<std::string> strings{"..", "...."};
    CHECK(c.readv(strings) == 6);
    CHECK(strings[1] == std::string("ghi") + static_cast<char>(first[0]));
  });
}

TEST_CASE("deadlines") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
    char buf[10];
    std::error_code ec;

    SECTION("in the future") {
      auto before = steady::now();
      s.set_read_deadline(before + 30ms);
      CHECK(s.read(buf, ec) == 0);
      CHECK(ec == std::errc::timed_out);
      CHECK(steady::now() - before >= 30ms);
      CHECK(steady::now() - before < 5s);
      CHECK(code_of([&] { s.read(buf); }) == std::errc::timed_out);
      s.set_read_deadline(weft::time_point::max());
      c.write("x");
      CHECK(s.read(buf) == 1);
    }
    SECTION("in the past, although data is ready") {
      c.write("x");
      CHECK(s.read(buf) == 1);
      c.write("x");
      weft::sleep(5ms);
      s.set_read_deadline(steady::now() - 1s);
      CHECK(s.read(buf, ec) == 0);
      CHECK(ec == std::errc::timed_out);
      s.set_read_deadline({});
      CHECK(s.read(buf, ec) == 0);
      CHECK(ec == std::errc::timed_out);
      s.set_read_deadline(weft::time_point::max());
      CHECK(s.read(buf) == 1);
    }
    SECTION("a past one wakes a waiting call") {
      auto reader = in_background([&s = s](std::error_code& e) {
        char b[1];
        s.read(b, e);
      });
      weft::sleep(10ms);
      s.set_deadline(steady::now() - 1ns);
      CHECK(outcome(reader) == std::errc::timed_out);
    }
    SECTION("moved later while a call waits") {
      auto before = steady::now();
      s.set_read_deadline(before + 1s);
      auto reader = in_background([&s = s](std::error_code& e) {
        char b[1];
        s.read(b, e);
      });
      weft::sleep(5ms);
      s.set_read_deadline(before + 1200ms);
      CHECK(outcome(reader) == std::errc::timed_out);
      CHECK(steady::now() - before >= 1200ms);
    }
    SECTION("moved earlier while a call waits") {
      auto before = steady::now();
      s.set_read_deadline(before + 30s);
      auto reader = in_background([&s = s](std::error_code& e) {
        char b[1];
        s.read(b, e);
      });
      weft::sleep(5ms);
      s.set_read_deadline(before + 20ms);
      CHECK(outcome(reader) == std::errc::timed_out);
      CHECK(steady::now() - before < 10s);
    }
    SECTION("taken away while a call waits") {
      s.set_read_deadline(steady::now() + 300ms);
      auto reader = in_background([&s = s](std::error_code& e) {
        char b[1];
        s.read(b, e);
      });
      weft::sleep(5ms);
      s.set_read_deadline(weft::time_point::max());
      weft::sleep(350ms);
      c.write("x");
      CHECK(!outcome(reader));
    }
    SECTION("of writing") {
      std::size_t written = fill(c);
      CHECK(written > 0);
      c.set_read_deadline(steady::now() - 1s);  // the deadline of the other direction must not matter
      c.set_write_deadline(steady::now() + 20ms);
      CHECK(c.write("x", ec) == 0);
      CHECK(ec == std::errc::timed_out);
    }
    SECTION("passed while nobody ran its timer, although data is ready") {
      weft::set_procs(1);
      auto l = tcp_listener::bind("127.0.0.1:0");
      auto other = tcp_stream::connect(address_of(l), 5s);
      bool drained = GENERATE(false, true);
      c.write("x");
      if (drained) CHECK(s.read(buf) == 1);
      if (drained) c.write("x");
      const auto soon = steady::now() + 100us;
      s.set_deadline(soon);
      l.set_deadline(soon);
      while (steady::now() < soon) {}
      CHECK(s.read(buf, ec) == 0);
      CHECK(ec == std::errc::timed_out);
      s.set_deadline(soon);
      CHECK(s.write("y", ec) == 0);
      CHECK(ec == std::errc::timed_out);
      CHECK(code_of([&] { l.accept(); }) == std::errc::timed_out);
    }
    SECTION("of accept") {
      auto l = tcp_listener::bind("127.0.0.1:0");
      l.set_deadline(steady::now() + 10ms);
      CHECK(code_of([&] { l.accept(); }) == std::errc::timed_out);
      l.set_deadline(weft::time_point::max());
      auto other = tcp_stream::connect(address_of(l), 5s);
      CHECK(l.accept().is_open());
    }
  });
}

TEST_CASE("deadlines pushed along while data flows") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
    weft::task<void> writer = weft::spawn([&c = c] {
      for (int i = 0; i < 200; ++i) {
        c.write("x");
        if (i % 10 == 0) weft::sleep(1ms);
      }
      c.close();
    });
    char buf[1];
    int got = 0;
    for (;;) {
      s.set_read_deadline(steady::now() + 5s);
      if (s.read(buf) == 0) break;
      ++got;
    }
    CHECK(got == 200);
    writer.join();
  });
}

TEST_CASE("close wakes who waits") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
    std::error_code ec;
    char buf[1];

    SECTION("a reader") {
      auto reader = in_background([&s = s](std::error_code& e) {
        char b[1];
        s.read(b, e);
      });
      weft::sleep(5ms);
      s.close();
      CHECK(outcome(reader) == std::errc::operation_canceled);
    }
    SECTION("readers that wait for their turn, a writer, and the throwing forms") {
      fill(s);
      std::vector<weft::chan<std::error_code>> all;
      for (int i = 0; i < 3; ++i) {
        all.push_back(in_background([&s = s](std::error_code& e) {
          e = code_of([&] {
            char b[1];
            s.read(b);
          });
        }));
        all.push_back(in_background([&s = s](std::error_code& e) { e = code_of([&] { s.write("x"); }); }));
      }
      weft::sleep(5ms);
      s.close();
      for (auto& one : all) CHECK(outcome(one) == std::errc::operation_canceled);
    }
    SECTION("accept, and the port is free afterwards") {
      auto l = tcp_listener::bind("127.0.0.1:0");
      auto where = l.local_endpoint();
      auto acceptor = in_background([&](std::error_code& e) { l.accept(e); });
      weft::sleep(5ms);
      l.close();
      auto again = tcp_listener::bind(where);
      CHECK(again.local_endpoint() == where);
      CHECK(outcome(acceptor) == std::errc::operation_canceled);
    }
    SECTION("then every call says so") {
      s.close();
      CHECK(s.read(buf, ec) == 0);
      CHECK(ec == std::errc::bad_file_descriptor);
      CHECK(s.write("x", ec) == 0);
      CHECK(ec == std::errc::bad_file_descriptor);
      CHECK(code_of([&] { s.set_deadline(steady::now()); }) == std::errc::bad_file_descriptor);
      CHECK(code_of([&] { s.local_endpoint(); }) == std::errc::bad_file_descriptor);
      CHECK(code_of([&] { s.remote_endpoint(); }) == std::errc::bad_file_descriptor);
      CHECK(code_of([&] { s.shutdown_write(); }) == std::errc::bad_file_descriptor);
      CHECK(code_of([&] { s.release(); }) == std::errc::bad_file_descriptor);
      CHECK(s.native_handle() == -1);
      s.close();
      s.close(ec);
      CHECK(ec == std::errc::bad_file_descriptor);
      tcp_stream none;
      CHECK(code_of([&] { none.read(buf); }) == std::errc::bad_file_descriptor);
      none.close();
    }
  });
}

TEST_CASE("destroying a stream closes it for those that wait in it") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
    auto shared = std::make_unique<tcp_stream>(std::move(s));
    std::vector<weft::chan<std::error_code>> readers;
    for (int i = 0; i < 3; ++i) {
      readers.push_back(in_background([p = shared.get()](std::error_code& e) {
        e = code_of([&] {
          char b[1];
          p->read(b);
        });
      }));
    }
    until_waiting(3);  // one waits for the network, the others for their turn
    shared.reset();
    for (auto& r : readers) CHECK(outcome(r) == std::errc::operation_canceled);
    CHECK(text_of(c).empty());
  });
}

TEST_CASE("moving a stream while a call waits in it") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
    auto first = std::make_unique<tcp_stream>(std::move(s));
    auto reader = in_background([p = first.get()](std::error_code& e) {
      char b[1];
      p->read(b, e);
    });
    until_waiting(1);
    tcp_stream second = std::move(*first);
    first.reset();
    c.write("x");
    CHECK(!outcome(reader));
    CHECK(second.is_open());
  });
}

TEST_CASE("two readers take turns") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &client = streams.client, &server = streams.server;
    tcp_stream& c = client;
    tcp_stream& s = server;
    constexpr int readers = 4, records = 400;
    weft::chan<int> seen{records};
    std::vector<weft::task<int>> tasks;
    for (int r = 0; r < readers; ++r) {
      tasks.push_back(weft::spawn([&] {
        int n = 0;
        for (char record[8];; ++n) {
          std::error_code ec;
          if (s.read_exactly(record, ec) != sizeof record) return n;
          // The record is whole: no other reader has got in between.
          if (std::string_view(record, 2) != "<<" || std::string_view(record + 6, 2) != ">>") return -records;
          seen.send(std::stoi(std::string(record + 2, 4)));
        }
      }));
    }
    for (int i = 0; i < records; ++i) {
      char record[9];
      std::snprintf(record, sizeof record, "<<%04d>>", i);
      c.write(record);
      if (i % 50 == 0) weft::sleep(1ms);
    }
    c.shutdown_write();
    int total = 0;
    for (auto& t : tasks) total += t.join();
    CHECK(total == records);
    std::vector<bool> had(records);
    for (int i = 0; i < records; ++i) had[static_cast<std::size_t>(*seen.recv())] = true;
    CHECK(std::find(had.begin(), had.end(), false) == had.end());
  });
}

namespace {

// Runs n connections, each with a client and a server that computes for `work` on each message, until one of them has
// made `most` round trips. Returns the fewest that any has made.
int least_served(std::size_t n, int most, std::chrono::microseconds work) {
  int least = 0;
  weft::run(
      [&] {
        auto l = tcp_listener::bind("127.0.0.1:0");
        weft::go([&l, work] {
          std::error_code ec;
          for (;;) {
            auto s = l.accept(ec);
            if (ec) return;
            weft::go([s = std::move(s), work]() mutable {
              std::array<char, 8> buffer;
              std::error_code ended;
              while (std::size_t got = s.read(buffer, ended)) {
                for (auto until = steady::now() + work; steady::now() < until;) {}
                s.write(std::span(buffer).first(got), ended);
              }
            });
          }
        });
        std::vector<tcp_stream> clients;
        for (std::size_t i = 0; i < n; ++i) clients.push_back(tcp_stream::connect(address_of(l), 5s));
        std::vector<std::atomic<int>> rounds(n);
        std::atomic<bool> over{false};
        weft::wait_group talking;
        for (std::size_t i = 0; i < n; ++i) {
          talking.go([&, i] {
            char c = 'x';
            while (!over) {
              clients[i].write(std::span(&c, 1));
              clients[i].read_exactly(std::span(&c, 1));
              if (++rounds[i] == most) over = true;
            }
          });
        }
        talking.wait();
        least = *std::ranges::min_element(rounds);
      },
      {.procs = 1});
  return least;
}

}  // namespace

// Connections take turns: none waits while others are served again and again.
TEST_CASE("hundreds of busy connections are served alike") {
  CHECK(least_served(400, 50, 0us) >= 25);    // more than a run queue holds
  CHECK(least_served(100, 30, 200us) >= 15);  // at 200 µs each, the poller is looked at between any two
}

TEST_CASE("writes of two goroutines do not mix") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &client = streams.client, &server = streams.server;
    tcp_stream& c = client;
    tcp_stream& s = server;
    constexpr std::size_t block = 300 * 1000, writers = 4, rounds = 3;
    std::vector<weft::task<void>> tasks;
    for (std::size_t w = 0; w < writers; ++w) {
      tasks.push_back(weft::spawn([&, w] {
        std::string mine(block, static_cast<char>('a' + w));
        for (std::size_t i = 0; i < rounds; ++i) c.write(mine);
      }));
    }
    std::string got(block, '\0');
    std::array<int, writers> blocks{};
    for (std::size_t i = 0; i < writers * rounds; ++i) {
      s.read_exactly(got);
      CHECK(got.find_first_not_of(got[0]) == std::string::npos);
      ++blocks[static_cast<std::size_t>(got[0] - 'a')];
    }
    for (int n : blocks) CHECK(n == static_cast<int>(rounds));
    for (auto& t : tasks) t.join();
  });
}

TEST_CASE("one goroutine reads while another writes") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &client = streams.client, &server = streams.server;
    tcp_stream& c = client;
    tcp_stream& s = server;
    constexpr std::size_t amount = 2000 * 1000;
    auto both = [](tcp_stream& t, char own) {
      weft::task<void> writer = weft::spawn([&t, own] {
        t.write(std::string(amount, own));
        t.shutdown_write();
      });
      std::size_t n = text_of(t).size();
      writer.join();
      return n;
    };
    weft::task<std::size_t> other = weft::spawn([&] { return both(s, 's'); });
    CHECK(both(c, 'c') == amount);
    CHECK(other.join() == amount);
  });
}

TEST_CASE("a peer that is gone") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
    std::error_code ec;
    char buf[10];

    SECTION("reset while we read") {
      auto reader = in_background([&s = s](std::error_code& e) {
        char b[1];
        s.read(b, e);
      });
      weft::sleep(5ms);
      linger hard{1, 0};
      ::setsockopt(c.native_handle(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
      c.close();
      CHECK(outcome(reader) == std::errc::connection_reset);
    }
    SECTION("writing to it: an error, no signal") {
      c.close();
      for (int i = 0; i < 1000 && !ec; ++i) {
        s.write("x", ec);
        weft::sleep(100us);
      }
      CHECK((ec == std::errc::broken_pipe || ec == std::errc::connection_reset));
      s.write("x", ec);
      CHECK(ec == std::errc::broken_pipe);
    }
    SECTION("the message names it") {
      std::string peer = s.remote_endpoint().to_string();
      s.set_deadline({});
      try {
        s.read(buf);
        FAIL("no exception");
      } catch (const std::system_error& e) {
        CHECK(std::string(e.what()).find("read " + peer) != std::string::npos);
      }
    }
  });
}

TEST_CASE("refused and impossible connections") {
  weft::run([] {
    std::string nobody;
    {
      auto l = tcp_listener::bind("127.0.0.1:0");
      nobody = address_of(l);
    }
    CHECK(code_of([&] { tcp_stream::connect(nobody); }) == std::errc::connection_refused);
    CHECK(code_of([&] { tcp_stream::connect(nobody, 2s); }) == std::errc::connection_refused);
    std::error_code ec;
    CHECK(!tcp_stream::connect(nobody, ec).is_open());
    CHECK(ec == std::errc::connection_refused);
    CHECK(code_of([&] { tcp_stream::connect(nobody, 0s); }) == std::errc::timed_out);
    CHECK(code_of([&] { tcp_stream::connect(nobody, -1s); }) == std::errc::timed_out);
    try {
      tcp_stream::connect(nobody);
    } catch (const std::system_error& e) {
      CHECK(std::string(e.what()).find("connect " + nobody) != std::string::npos);
    }
    auto l = tcp_listener::bind("127.0.0.1:0");
    CHECK(code_of([&] { tcp_listener::bind(address_of(l)); }) == std::errc::address_in_use);
    CHECK(code_of([&] { tcp_listener::bind("192.0.2.250:0"); }) == std::errc::address_not_available);
  });
}

TEST_CASE("connect gives up at its limit") {
  weft::run([] {
    // A listener that never accepts, with its queue full: the next connection waits.
    auto l = tcp_listener::bind("127.0.0.1:0", {.backlog = 1});
    std::vector<tcp_stream> waiting;
    std::error_code ec;
    for (int i = 0; i < 20 && !ec; ++i) {
      waiting.push_back(tcp_stream::connect(address_of(l), 200ms, ec));
    }
    REQUIRE(ec == std::errc::timed_out);
    auto before = steady::now();
    CHECK(code_of([&] { tcp_stream::connect(address_of(l), 50ms); }) == std::errc::timed_out);
    CHECK(steady::now() - before >= 50ms);
    CHECK(steady::now() - before < 5s);
    before = steady::now();
    CHECK(code_of([&] { tcp_stream::connect(l.local_endpoint(), 50ms); }) == std::errc::timed_out);
    tcp_stream::connect(l.local_endpoint(), 20ms, ec);
    CHECK(ec == std::errc::timed_out);
    CHECK(steady::now() - before >= 70ms);
    CHECK(steady::now() - before < 5s);
  });
}

TEST_CASE("connect with a context") {
  weft::run([] {
    auto l = tcp_listener::bind("127.0.0.1:0", {.backlog = 1});
    auto [live, end_live] = weft::with_cancel(weft::background());
    std::vector<tcp_stream> waiting;
    waiting.push_back(tcp_stream::connect(address_of(l), live));
    CHECK(waiting[0].is_open());
    waiting.push_back(tcp_stream::connect(l.local_endpoint(), weft::background()));
    std::error_code ec;
    for (int i = 0; i < 20 && !ec; ++i) waiting.push_back(tcp_stream::connect(address_of(l), 100ms, ec));
    REQUIRE(ec == std::errc::timed_out);  // the queue is full

    auto [short_lived, end_short] = weft::with_timeout(live, 20ms);
    CHECK(code_of([&, &c = short_lived] { tcp_stream::connect(address_of(l), c); }) == std::errc::timed_out);
    auto connecting = in_background([&, &c = live](std::error_code& e) { tcp_stream::connect(address_of(l), c, e); });
    weft::sleep(5ms);
    end_live();
    CHECK(outcome(connecting) == std::errc::operation_canceled);
    CHECK(code_of([&, &c = live] { tcp_stream::connect(address_of(l), c); }) == std::errc::operation_canceled);
    CHECK(code_of([&c = live] { tcp_stream::connect("localhost:1", c); }) == std::errc::operation_canceled);
    CHECK(code_of([&, &c = live] { tcp_stream::connect(l.local_endpoint(), c); }) == std::errc::operation_canceled);
    CHECK(code_of([&c = live] { unix_stream::connect("@x", c); }) == std::errc::operation_canceled);
  });
}

TEST_CASE("connect in a plain thread gives up when run() ends, also with another address to try") {
  std::error_code ec;
  std::thread other;
  tcp_listener l;
  std::vector<tcp_stream> waiting;
  weft::run([&] {
    l = tcp_listener::bind("127.0.0.1:0", {.backlog = 1});
    for (int i = 0; i < 20 && !ec; ++i) waiting.push_back(tcp_stream::connect(address_of(l), 100ms, ec));
    REQUIRE(ec == std::errc::timed_out);  // the queue is full
    std::string both = ":" + std::to_string(l.local_endpoint().port());
    other = std::thread([&ec, both] { tcp_stream::connect(both, ec); });
    weft::sleep(50ms);
  });
  other.join();
  CHECK(ec == std::errc::operation_canceled);
}

TEST_CASE("a pair without descriptors is two closed streams") {
  weft::run([] {
    std::error_code ec = std::make_error_code(std::errc::io_error);
    auto [a, b] = unix_stream::pair(ec);
    CHECK(!ec);
    CHECK(a.write("x") == 1);
    char byte[1];
    CHECK(b.read(byte) == 1);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const int lowest = ::dup(0);
    ::close(lowest);
    for (int spare = 0; spare < 2; ++spare) {
      const rlimit few{static_cast<rlim_t>(lowest + spare), before.rlim_max};
      ::setrlimit(RLIMIT_NOFILE, &few);
      auto none = unix_stream::pair(ec);
      ::setrlimit(RLIMIT_NOFILE, &before);
      CHECK(ec == std::errc::too_many_files_open);
      CHECK_FALSE(none.first.is_open());
      CHECK_FALSE(none.second.is_open());
    }
  });
}

TEST_CASE("malformed addresses") {
  weft::run([] {
    for (const char* text : {"",
                             ":",
                             "127.0.0.1",
                             "127.0.0.1:",
                             "127.0.0.1:65536",
                             "127.0.0.1:-1",
                             "127.0.0.1:1x",
                             "127.0.0.1:99999999999",
                             "256.0.0.1:80",
                             "1.2.3:80",
                             "0x7f.1:80",
                             "0x7f000001:80",
                             "127.0.0.1:+80",
                             "127.0.0.1:-x",
                             "1.2.3.4.5:80",
                             "::1:80",
                             "[::1]",
                             "[::1",
                             "[::1]80",
                             "[127.0.0.1]:80",
                             "[]:80",
                             "a b:80",
                             "no/path:80",
                             "a..b:80",
                             ".a:80",
                             "localhost",
                             "localhost:",
                             "localhost:80:80",
                             " 127.0.0.1:80",
                             "127.0.0.1:80 "}) {
      INFO(text);
      std::error_code ec;
      CHECK(!tcp_stream::connect(text, ec).is_open());
      CHECK(ec == std::errc::invalid_argument);
      CHECK(!tcp_listener::bind(text, ec).is_open());
      CHECK(ec == std::errc::invalid_argument);
      CHECK(code_of([&] { tcp_listener::bind(text); }) == std::errc::invalid_argument);
    }
    CHECK(code_of([] { tcp_stream::connect(std::string_view("127.0.0.1\0:80", 13)); }) == std::errc::invalid_argument);
    CHECK(code_of([] { tcp_stream::connect(std::string(64, 'a') + ":80"); }) == std::errc::invalid_argument);
  });
}

TEST_CASE("endpoints") {
  using weft::net::endpoint;
  CHECK(endpoint().to_string() == "0.0.0.0:0");
  endpoint a = endpoint::parse("127.0.0.1:80");
  CHECK(a.port() == 80);
  CHECK(a.address() == "127.0.0.1");
  CHECK(a.is_v4());
  endpoint b = endpoint::parse("[2001:db8::1]:65535");
  CHECK(b.to_string() == "[2001:db8::1]:65535");
  CHECK(b.is_v6());
  CHECK(a == endpoint::parse("127.0.0.1:80"));
  CHECK(!(a == b));
  a.set_port(81);
  CHECK(to_string(a) == "127.0.0.1:81");
  std::error_code ec;
  endpoint::parse("localhost:80", ec);
  CHECK(ec == std::errc::invalid_argument);
  CHECK(endpoint::parse("[fe80::1%lo]:1").address() == "fe80::1%lo");
  CHECK(endpoint::parse("[::ffff:127.0.0.1]:81") == a);
  using namespace std::string_view_literals;
  endpoint::parse("[fe80::1%lo\0x]:1"sv, ec);
  CHECK(ec == std::errc::invalid_argument);
}

TEST_CASE("endpoints are keys of maps") {
  using weft::net::endpoint;
  std::vector<endpoint> ordered;
  for (const char* text :
       {"1.0.0.2:80", "2.0.0.1:79", "2.0.0.1:300", "10.0.0.1:1", "[::1]:80", "[fe80::1]:1", "[fe80::1%lo]:1"}) {
    ordered.push_back(endpoint::parse(text));
  }
  CHECK(std::is_sorted(ordered.begin(), ordered.end()));
  std::set<endpoint> tree(ordered.rbegin(), ordered.rend());
  CHECK(std::equal(tree.begin(), tree.end(), ordered.begin(), ordered.end()));
  std::unordered_set<endpoint> table(ordered.begin(), ordered.end());
  CHECK(table.size() == ordered.size());
  CHECK(table.contains(endpoint::parse("[::ffff:10.0.0.1]:1")));
}

TEST_CASE("names") {
  weft::run([] {
    auto l = tcp_listener::bind("localhost:0");
    auto port = std::to_string(l.local_endpoint().port());
    auto c = tcp_stream::connect("localhost:" + port, 5s);
    auto s = l.accept();
    c.write("x");
    char buf[1];
    CHECK(s.read(buf) == 1);

    auto any = tcp_listener::bind(":0");
    auto c2 = tcp_stream::connect(":" + std::to_string(any.local_endpoint().port()), 5s);
    CHECK(any.accept().is_open());

    auto found = weft::net::resolve("127.0.0.1", "80");
    REQUIRE(found.size() == 1);
    CHECK(found[0].to_string() == "127.0.0.1:80");
    CHECK(!weft::net::resolve("localhost", "").empty());
    CHECK(code_of([] { weft::net::resolve("", ""); }) == std::errc::invalid_argument);
    CHECK(code_of([] { tcp_stream::connect("localhost:no-such-service"); }) == std::errc::invalid_argument);
    for (const char* port_that_does_not_fit : {"65536", "65616", "99999", " 80"}) {
      INFO(port_that_does_not_fit);
      CHECK(code_of([&] { weft::net::resolve("localhost", port_that_does_not_fit); }) == std::errc::invalid_argument);
    }
    CHECK(code_of([] { weft::net::resolve(std::string("localhost\0.example.org", 22), "80"); }) ==
          std::errc::invalid_argument);
  });
}

TEST_CASE("a time limit of long ago") {
  weft::run([] {
    auto long_ago = (weft::time_point::min)();
    CHECK(code_of([&] { tcp_stream::connect("localhost:1", long_ago); }) == std::errc::timed_out);
    CHECK(code_of([&] { tcp_stream::connect("127.0.0.1:1", long_ago); }) == std::errc::timed_out);
  });
}

TEST_CASE("messages name the address, also of datagrams and at the end of a stream") {
  auto says = [](const weft::net::endpoint& at, auto call) {
    try {
      call();
    } catch (const std::system_error& e) {
      INFO(e.what());
      CHECK(std::string(e.what()).find(at.to_string()) != std::string::npos);
      return;
    }
    FAIL("nothing was thrown");
  };
  weft::run([&] {
    auto l = tcp_listener::bind("127.0.0.1:0");
    auto c = tcp_stream::connect(l.local_endpoint());
    l.accept().close();
    char buf[1];
    says(l.local_endpoint(), [&] { c.read_some(buf); });
    says(l.local_endpoint(), [&] { c.read_exactly(buf); });

    auto u = udp_socket::bind("127.0.0.1:0");
    says(u.local_endpoint(), [&] { u.send("no peer"); });
    u.set_deadline((weft::time_point::min)());
    says(u.local_endpoint(), [&] { u.receive(buf); });
    says(u.local_endpoint(), [&] { u.receive_from(buf); });
  });
}

TEST_CASE("messages name what cannot be had: a unix socket's path, a descriptor, an address in brackets") {
  auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const std::system_error& e) {
      const std::string all = e.what();
      return all.substr(0, all.rfind(':'));  // the rest is the system's
    }
    return "nothing was thrown";
  };
  weft::run([&] {
    const std::string path = "/tmp/weft-messages-" + std::to_string(::getpid());
    auto l = unix_listener::bind(path);
    auto client = unix_stream::connect(path);
    auto server = l.accept();
    for (weft::net::detail::socket* s : std::initializer_list<weft::net::detail::socket*>{&l, &client, &server}) {
      s->set_deadline((weft::time_point::min)());
    }
    char buf[1];
    CHECK(message([&] { l.accept(); }) == "weft: accept " + path);
    CHECK(message([&] { client.read(buf); }) == "weft: read " + path);
    CHECK(message([&] { server.read(buf); }) == "weft: read " + path);
    CHECK(message([&] { server.write("x"); }) == "weft: write " + path);
    auto [a, b] = unix_stream::pair();
    a.set_deadline((weft::time_point::min)());
    CHECK(message([&a = a, &buf] { a.read(buf); }) == "weft: read");
    CHECK(message([] { tcp_stream::adopt(-1); }) == "weft: adopt descriptor -1");
    CHECK(message([] { weft::net::resolve("::1", "99999"); }) == "weft: resolve [::1]:99999");
    CHECK(message([] { weft::net::resolve("localhost", "99999"); }) == "weft: resolve localhost:99999");
  });
}

TEST_CASE("a stream adopts no datagram socket") {
  weft::run([] {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
    CHECK(code_of([&] { tcp_stream::adopt(fds[0]); }) == std::errc::wrong_protocol_type);
    CHECK(::close(fds[0]) == 0);  // adopt has left it to us
    ::close(fds[1]);
  });
}

TEST_CASE("a stream adopts no stream of another family") {
  weft::run([] {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    CHECK(code_of([&] { tcp_stream::adopt(fds[0]); }) == std::errc::wrong_protocol_type);
    auto s = unix_stream::adopt(fds[0]);  // adopt has left it to us
    auto l = tcp_listener::bind("127.0.0.1:0");
    auto t = tcp_stream::connect(l.local_endpoint());
    const int tcp = t.release();
    CHECK(code_of([&] { unix_stream::adopt(tcp); }) == std::errc::wrong_protocol_type);
    CHECK_NOTHROW(tcp_stream::adopt(tcp));
    ::close(fds[1]);
  });
}

TEST_CASE("listeners and datagram sockets are adopted") {
  weft::run([] {
    auto l = tcp_listener::bind("127.0.0.1:0");
    auto at = l.local_endpoint();
    l = tcp_listener::adopt(l.release());
    CHECK(l.local_endpoint() == at);
    auto c = tcp_stream::connect(at);
    auto s = l.accept();
    c.write("x");
    char buf[1];
    CHECK(s.read(buf) == 1);

    auto far = udp_socket::bind("127.0.0.1:0");
    auto near = udp_socket::bind("127.0.0.1:0");
    at = near.local_endpoint();
    near = udp_socket::adopt(near.release());
    far.send_to("y", at);
    CHECK(near.receive(buf) == 1);
    CHECK(code_of([] { udp_socket::adopt(-1); }) == std::errc::bad_file_descriptor);

    // What fails names the peer, if there is one.
    at = far.local_endpoint();
    near = udp_socket::connect(at);
    near = udp_socket::adopt(near.release());
    far.close();
    near.send("z");
    std::string said;
    try {
      near.send("z");
    } catch (const std::system_error& e) {
      said = e.what();
    }
    CHECK(said.find(at.to_string()) != std::string::npos);
  });
}

TEST_CASE("an adopted unix_listener leaves its path") {
  const std::string path = "/tmp/weft-net-test-" + std::to_string(::getpid());
  ::unlink(path.c_str());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  weft::run([&] {
    CHECK(code_of([&] { unix_listener::adopt(fd); }) == std::errc::invalid_argument);  // it does not listen yet
    REQUIRE(::listen(fd, 1) == 0);
    CHECK(code_of([&] { tcp_listener::adopt(fd); }) == std::errc::wrong_protocol_type);
    CHECK(code_of([&] { udp_socket::adopt(fd); }) == std::errc::wrong_protocol_type);
    CHECK(code_of([&] { unix_stream::adopt(fd); }) == std::errc::not_connected);
    auto l = unix_listener::adopt(fd);
    auto c = unix_stream::connect(path);
    auto s = l.accept();
    c.write("x");
    char buf[1];
    CHECK(s.read(buf) == 1);
  });
  CHECK(::unlink(path.c_str()) == 0);
}

TEST_CASE("IPv6") {
  weft::run([] {
    std::error_code ec;
    auto l = tcp_listener::bind("[::1]:0", ec);
    if (ec) return;  // no IPv6 on this machine
    CHECK(l.local_endpoint().address() == "::1");
    auto c = tcp_stream::connect(l.local_endpoint(), ec);
    REQUIRE(!ec);
    CHECK(l.accept().remote_endpoint() == c.local_endpoint());
  });
}

TEST_CASE("sockets of both families: IPv4 peers look like IPv4") {
  weft::run([] {
    std::error_code ec;
    auto l = tcp_listener::bind("[::]:0", ec);
    if (ec) return;  // no IPv6 on this machine
    auto c = tcp_stream::connect("127.0.0.1:" + std::to_string(l.local_endpoint().port()));
    auto s = l.accept();
    CHECK(s.remote_endpoint() == c.local_endpoint());
    CHECK(s.local_endpoint() == c.remote_endpoint());

    auto both = udp_socket::bind("[::]:0");
    auto v4 = udp_socket::connect("127.0.0.1:" + std::to_string(both.local_endpoint().port()));
    v4.send("x");
    char byte[2];
    auto r = both.receive_from(byte);
    CHECK(r.from == v4.local_endpoint());
    both.send_to("yz", r.from);
    CHECK(v4.receive(byte) == 2);
  });
}

TEST_CASE("options") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
    auto nodelay = [](const tcp_stream& t) {
      int value = -1;
      socklen_t size = sizeof value;
      ::getsockopt(t.native_handle(), 6, 1, &value, &size);
      return value;
    };
    CHECK(nodelay(c) == 1);
    CHECK(nodelay(s) == 1);
    c.set_nodelay(false);
    CHECK(nodelay(c) == 0);

    auto a = tcp_listener::bind("127.0.0.1:0", {.reuse_port = true});
    auto b = tcp_listener::bind(a.local_endpoint(), {.reuse_port = true});
    CHECK(a.local_endpoint() == b.local_endpoint());
  });
}

TEST_CASE("release gives the descriptor away") {
  weft::run([] {
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
    auto reader = in_background([&s = s](std::error_code& e) {
      char b[1];
      s.read(b, e);
    });
    weft::sleep(5ms);
    int fd = s.release();
    REQUIRE(fd >= 0);
    CHECK(outcome(reader) == std::errc::operation_canceled);
    CHECK(!s.is_open());
    CHECK(::send(fd, "x", 1, 0) == 1);
    char buf[1];
    CHECK(c.read(buf) == 1);
    auto again = tcp_stream::adopt(fd);
    again.write("y");
    CHECK(c.read(buf) == 1);
    CHECK(code_of([] { tcp_stream::adopt(-1); }) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("accept waits while there are no descriptors") {
  weft::run([] {
    auto l = tcp_listener::bind("127.0.0.1:0");
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    auto acceptor = in_background([&](std::error_code& e) {
      tcp_stream s = l.accept(e);
      if (!e) s.write("welcome", e);
    });
    weft::sleep(5ms);
    auto c = tcp_stream::connect(address_of(l), 5s);  // the acceptor's first accept takes this one
    CHECK(text_of(c) == "welcome");
    CHECK(!outcome(acceptor));

    int lowest = ::dup(0);
    ::close(lowest);
    tcp_stream waits = tcp_stream::connect(address_of(l), 5s);
    rlimit none{static_cast<rlim_t>(lowest), before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    auto second = in_background([&](std::error_code& e) {
      tcp_stream s = l.accept(e);
      if (!e) s.write("at last", e);
    });
    std::error_code ec;
    CHECK(second.recv_for(ec, 50ms) == weft::recv_result::empty);
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(text_of(waits) == "at last");
    CHECK(!outcome(second));

    // The same, and the listener is closed meanwhile.
    tcp_stream never = tcp_stream::connect(address_of(l), 5s);
    lowest = ::dup(0);
    ::close(lowest);
    none.rlim_cur = static_cast<rlim_t>(lowest);
    ::setrlimit(RLIMIT_NOFILE, &none);
    auto third = in_background([&](std::error_code& e) { l.accept(e); });
    weft::sleep(5ms);
    l.close();
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(outcome(third) == std::errc::operation_canceled);
  });
}

// The number of stdin is free, and no other one is: a socket can be had, but none beyond the standard streams.
TEST_CASE("accept loses no connection when the last free number is a standard stream's") {
  weft::run([] {
    auto l = tcp_listener::bind("127.0.0.1:0");
    auto first = tcp_stream::connect(address_of(l), 5s);
    auto second = tcp_stream::connect(address_of(l), 5s);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const int input = ::fcntl(0, F_DUPFD_CLOEXEC, 3);
    const int lowest = ::fcntl(1, F_DUPFD_CLOEXEC, 3);
    ::close(lowest);
    const rlimit none{static_cast<rlim_t>(lowest), before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    ::close(0);
    auto acceptor = in_background([&](std::error_code& e) {
      for (int i = 0; i < 2 && !e; ++i) {
        tcp_stream s = l.accept(e);
        if (!e) s.write("welcome", e);
      }
    });
    weft::sleep(50ms);
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(text_of(first) == "welcome");
    CHECK(text_of(second) == "welcome");
    l.close();
    outcome(acceptor);
    if (input >= 0) {
      ::dup2(input, 0);
      ::close(input);
    }
  });
}

TEST_CASE("descriptors are given back") {
  std::size_t before = 0;
  for (int round = 0; round < 2; ++round) {
    weft::run([&] {
      auto warm = connect_pair();
      if (round == 0) return;
      weft::sleep(1ms);
      before = open_descriptors();
      for (int i = 0; i < 50; ++i) {
        auto streams = connect_pair();
        [[maybe_unused]] tcp_stream &c = streams.client, &s = streams.server;
        auto reader = in_background([&s = s](std::error_code& e) {
          char b[1];
          s.read(b, e);
        });
        weft::yield();
        s.close();
        outcome(reader);
      }
      CHECK(open_descriptors() == before);
    });
  }
}

TEST_CASE("closing and reusing numbers under fire") {
  // A read from a closed stream must never get data of the next owner of the descriptor's number.
  weft::run([] {
    auto l = tcp_listener::bind("127.0.0.1:0");
    weft::task<void> server = weft::spawn([&] {
      std::error_code ec;
      for (;;) {
        tcp_stream s = l.accept(ec);
        if (ec) return;
        weft::go(
            [](tcp_stream t) {
              char b[4];
              std::error_code e;
              while (t.read_exactly(b, e) == 4) t.write(std::string_view(b, 4), e);
            },
            std::move(s));
      }
    });
    weft::chan<int> done{8};
    for (int w = 0; w < 8; ++w) {
      weft::go([&, w] {
        int wrong = 0;
        for (int i = 0; i < 40; ++i) {
          auto c = std::make_unique<tcp_stream>(tcp_stream::connect(address_of(l), 10s));
          std::string mine = {static_cast<char>('a' + w), 'x', 'y', static_cast<char>('0' + i % 10)};
          c->write(mine);
          std::string back(4, '\0');
          c->read_exactly(back);
          wrong += back != mine;
          auto reader = in_background([p = c.get()](std::error_code& e) {
            char b[4];
            p->read(b, e);
          });
          auto writer = in_background([p = c.get()](std::error_code& e) { p->write("zzzz", e); });
          if (i % 3 == 0) weft::yield();
          c->close();
          std::error_code r = *reader.recv();
          wrong += r && r != std::errc::operation_canceled && r != std::errc::bad_file_descriptor;
          (void)writer.recv();
        }
        done.send(wrong);
      });
    }
    for (int w = 0; w < 8; ++w) CHECK(*done.recv() == 0);
    l.close();
    server.join();
  });
}

TEST_CASE("from a thread that weft did not start") {
  weft::run([] {
    auto l = tcp_listener::bind("127.0.0.1:0");
    std::string where = address_of(l);
    weft::chan<std::string> result{1};
    std::thread other([&, result] {
      auto c = tcp_stream::connect(where, 5s);
      c.write("ping");
      c.shutdown_write();
      std::string answer = text_of(c);
      c.set_read_deadline(steady::now() + 10ms);
      result.send(answer);
    });
    auto s = l.accept();
    CHECK(text_of(s) == "ping");
    weft::sleep(5ms);  // by now the thread waits for the answer
    s.write("pong");
    s.close();
    CHECK(*result.recv() == "pong");
    weft::blocking([&] { other.join(); });

    // The thread's first read times out, and its second one is cancelled.
    auto streams = connect_pair();
    [[maybe_unused]] tcp_stream &c = streams.client, &t = streams.server;
    std::thread third([&t = t, result] {
      std::error_code ec;
      char b[1];
      t.set_read_deadline(steady::now() + 20ms);
      t.read(b, ec);
      t.set_read_deadline(weft::time_point::max());
      result.send(ec == std::errc::timed_out ? "timed out" : ec.message());
      t.read(b, ec);
      bool before_it_waits = ec == std::errc::bad_file_descriptor;
      result.send(ec == std::errc::operation_canceled || before_it_waits ? "cancelled" : ec.message());
    });
    CHECK(*result.recv() == "timed out");
    weft::sleep(20ms);  // by now the thread waits in its second read
    t.close();
    CHECK(*result.recv() == "cancelled");
    weft::blocking([&] { third.join(); });
  });
}

TEST_CASE("a thread that weft did not start goes on when run() ends") {
  tcp_listener l;
  std::error_code accepted, read;
  unix_stream a, b;
  std::vector<std::thread> threads;
  auto in_thread = [&](std::error_code& ec, auto f) {
    threads.emplace_back([&ec, f] {
      try {
        f(ec);
      } catch (const std::logic_error&) {  // the call began after the end of run()
        ec = std::make_error_code(std::errc::operation_canceled);
      }
    });
  };
  for (int round = 0; round < 3; ++round) {
    weft::run([&] {
      if (!l.is_open()) l = tcp_listener::bind("127.0.0.1:0");
      if (!a.is_open()) std::tie(a, b) = unix_stream::pair();
      std::atomic<int> begun{0};
      in_thread(accepted, [&](std::error_code& ec) {
        ++begun;
        l.accept(ec);
      });
      in_thread(read, [&](std::error_code& ec) {
        char c[1];
        a.set_read_deadline(steady::now() + 1h);
        ++begun;
        a.read(c, ec);
      });
      while (begun.load() < 2) weft::yield();
      // At the end of run() the threads wait, are about to wait, or have yet to make the call.
      if (round > 0) weft::sleep(round * 5ms);
    });
    for (auto& t : threads) t.join();
    threads.clear();
    CHECK(accepted == std::errc::operation_canceled);
    CHECK(read == std::errc::operation_canceled);
  }
  weft::run([&] {
    auto server = in_background([&](std::error_code& ec) { l.accept(ec); });
    auto c = tcp_stream::connect(address_of(l), 5s);
    CHECK(!*server.recv());
    auto reader = weft::spawn([&] {
      char r[1];
      return a.read(r);
    });
    weft::sleep(2ms);
    b.write("x");
    CHECK(reader.join() == 1);
  });
}

TEST_CASE("without a runtime") {
  CHECK_THROWS_AS(tcp_listener::bind("127.0.0.1:0"), std::logic_error);
  CHECK_THROWS_AS(tcp_stream::connect("127.0.0.1:1"), std::logic_error);
  CHECK_THROWS_AS(weft::net::resolve("localhost", "80"), std::logic_error);
  tcp_listener left;
  weft::run([&] { left = tcp_listener::bind("127.0.0.1:0"); });
  CHECK(left.is_open());
  CHECK_THROWS_AS(left.accept(), std::logic_error);
  left.close();
  CHECK(!left.is_open());
}

TEST_CASE("a listener outlives run()") {
  tcp_listener l;
  weft::run([&] {
    l = tcp_listener::bind("127.0.0.1:0");
    auto c = tcp_stream::connect(address_of(l), 5s);
    CHECK(l.accept().is_open());
  });
  weft::run([&] {
    auto waiting = in_background([&](std::error_code& e) { l.accept(e); });
    weft::sleep(2ms);
    auto c = tcp_stream::connect(address_of(l), 5s);
    CHECK(!outcome(waiting));
  });
  l.close();
}

TEST_CASE("calls that a run() left behind give their turn to those of the next") {
  enum class how { parked, woken, under_way };
  for (how left : {how::parked, how::woken, how::under_way, how::parked, how::woken, how::under_way}) {
    connection c;
    tcp_listener l;
    weft::run([&] {
      c = connect_pair();
      l = tcp_listener::bind("127.0.0.1:0");
      fill(c.client);
      for (int i = 0; i < 3; ++i) {  // of each kind, one call has the turn, and the others wait for it
        in_background([&](std::error_code& e) {
          char b;
          c.client.read(std::span(&b, 1), e);
        });
        in_background([&](std::error_code& e) { c.client.write("left", e); });
        in_background([&](std::error_code& e) { l.accept(e); });
      }
      if (left != how::under_way) weft::sleep(100ms);
      if (left == how::woken) c.server.write("left");
    });
    weft::run([&] {
      char b[16];
      std::error_code ec;
      c.client.set_read_deadline(steady::now() + 5ms);
      while (!ec) c.client.read(b, ec);
      CHECK(ec == std::errc::timed_out);
      c.client.set_read_deadline(steady::now() + 10s);
      auto reader = weft::spawn([&] { return c.client.read(b); });
      weft::sleep(2ms);
      c.server.write("hello");
      CHECK(reader.join() == 5);

      fill(c.client);  // the data that came in has made room
      c.client.set_write_deadline(steady::now() + 10s);
      auto rest = weft::spawn([&] { return text_of(c.server); });
      CHECK(c.client.write("the end") == 7);
      c.client.shutdown_write();
      CHECK(rest.join().ends_with("the end"));

      auto acceptor = in_background([&](std::error_code& e) { l.accept(e); });
      weft::sleep(2ms);
      auto caller = tcp_stream::connect(address_of(l), 5s);
      CHECK(!outcome(acceptor));

      auto begun = steady::now();
      c.client.close();
      l.close();
      // A call that was stopped before it counted as waiting makes close() wait for it (descriptor.cpp:
      // closer_patience).
      if (left != how::under_way) CHECK(steady::now() - begun < 500ms);
    });
  }
}

TEST_CASE("closing what a run() left calls in") {
  weft::run([] {});
  std::size_t before = open_descriptors();
  connection c;
  weft::run([&] {
    c = connect_pair();
    for (int i = 0; i < 3; ++i) {
      in_background([&](std::error_code& e) {
        char b;
        c.client.read(std::span(&b, 1), e);
      });
    }
    weft::sleep(20ms);
  });
  weft::run([&] {
    auto begun = steady::now();
    c.client.close();
    CHECK(steady::now() - begun < 500ms);
    char b;
    CHECK(c.server.read(std::span(&b, 1)) == 0);
    c.server.close();
  });
  CHECK(open_descriptors() == before);
}

TEST_CASE("unix sockets") {
  std::string path = "/tmp/weft-net-test-" + std::to_string(::getpid());
  weft::run([&] {
    for (std::string where : {path, "@weft-net-test-" + std::to_string(::getpid())}) {
      auto l = unix_listener::bind(where);
      CHECK(l.local_endpoint().to_string() == where);
      auto acceptor = weft::spawn([&] {
        auto s = l.accept();
        char buf[10];
        std::size_t n = s.read(buf);
        s.write(std::string_view(buf, n));
      });
      auto c = unix_stream::connect(where);
      c.write("hello");
      char buf[10];
      CHECK(c.read(buf) == 5);
      acceptor.join();
      l.close();
      CHECK(code_of([&] { unix_stream::connect(where); }));
    }
    CHECK(!std::filesystem::exists(path));
    CHECK(code_of([&] { unix_listener::bind(std::string(200, 'x')); }) == std::errc::invalid_argument);
    std::string longest = "@weft-net-test-" + std::to_string(::getpid());
    longest.resize(108, 'x');
    CHECK(unix_listener::bind(longest).local_endpoint().to_string() == longest);
    CHECK(code_of([&] { unix_listener::bind(longest + "x"); }) == std::errc::invalid_argument);
    CHECK(code_of([&] { unix_stream::connect(""); }) == std::errc::invalid_argument);
    auto streams = unix_stream::pair();
    unix_stream &a = streams.first, &b = streams.second;
    a.write("x");
    char buf[1];
    CHECK(b.read(buf) == 1);

    // A write that waits fails when another goroutine ends the stream, although the buffer stays full.
    auto writer = in_background([&](std::error_code& e) { a.write(std::string(8 << 20, 'x'), e); });
    weft::sleep(5ms);
    a.shutdown_write();
    CHECK(outcome(writer) == std::errc::broken_pipe);

    // A full queue makes connect wait.
    auto l = unix_listener::bind(path, {.backlog = 1});
    std::vector<unix_stream> waiting;
    std::error_code ec;
    for (int i = 0; i < 20 && !ec; ++i) waiting.push_back(unix_stream::connect(path, 30ms, ec));
    CHECK(ec == std::errc::timed_out);
    auto late = in_background([&](std::error_code& e) { unix_stream::connect(path, e); });
    l.accept();
    CHECK(!outcome(late));
  });
}

TEST_CASE("datagrams") {
  weft::run([] {
    using weft::net::udp_socket;
    auto a = udp_socket::bind("127.0.0.1:0");
    auto b = udp_socket::bind(weft::net::endpoint::parse("127.0.0.1:0"));
    auto receiver = weft::spawn([&] {
      char buf[100];
      auto r = b.receive_from(buf);
      b.send_to(std::string_view(buf, r.size), r.from);
    });
    weft::sleep(1ms);
    CHECK(a.send_to("hello", b.local_endpoint()) == 5);
    char buf[100];
    auto r = a.receive_from(buf);
    CHECK(r.size == 5);
    CHECK(r.from == b.local_endpoint());
    receiver.join();

    auto c = udp_socket::connect(a.local_endpoint().to_string());
    CHECK(c.remote_endpoint() == a.local_endpoint());
    c.send("x");
    r = a.receive_from(buf);
    a.send_to("yz", r.from);
    CHECK(c.receive(buf) == 2);
    auto by_endpoint = udp_socket::connect(a.local_endpoint());
    CHECK(by_endpoint.send("x") == 1);
    CHECK(a.receive_from(buf).from == by_endpoint.local_endpoint());
    CHECK(code_of([&] { udp_socket::bind(a.local_endpoint()); }) == std::errc::address_in_use);
    c.set_deadline(steady::now() + 0.01s);
    CHECK(code_of([&] { c.receive(buf); }) == std::errc::timed_out);
    CHECK(code_of([&] { udp_socket::bind(a.local_endpoint().to_string()); }) == std::errc::address_in_use);
    auto waiting = in_background([&](std::error_code& e) {
      char small[1];
      b.receive(small, e);
    });
    weft::sleep(50ms);  // it waits by then
    b.close();
    CHECK(outcome(waiting) == std::errc::operation_canceled);
  });
}

TEST_CASE("datagrams: one that is too long is cut, and the next one is whole") {
  weft::run([] {
    using weft::net::udp_socket;
    auto a = udp_socket::bind("127.0.0.1:0"), b = udp_socket::bind("127.0.0.1:0");
    b.send_to("hello", a.local_endpoint());
    b.send_to("yz", a.local_endpoint());
    a.set_deadline(steady::now() + 10s);
    char small[3];
    CHECK(a.receive_from(small).size == 3);
    CHECK(a.receive_from(small).size == 2);
  });
}

TEST_CASE("datagrams: sending without a peer, or to nobody") {
  weft::run([] {
    using weft::net::udp_socket;
    auto a = udp_socket::bind("127.0.0.1:0");
    CHECK(code_of([&] { a.send("x"); }) == std::errc::destination_address_required);
    auto nobody = a.local_endpoint();
    a.close();
    auto b = udp_socket::connect(nobody);
    b.send("x");
    b.set_deadline(steady::now() + 10s);
    char buf[1];
    CHECK(code_of([&] { b.receive(buf); }) == std::errc::connection_refused);
  });
}

TEST_CASE("unix sockets: a path that exists is in use, whoever left it there") {
  const std::string path = "/tmp/weft-net-test-left-" + std::to_string(::getpid());
  weft::run([&] {
    using weft::net::unix_listener;
    {
      auto l = unix_listener::bind(path);
      CHECK(code_of([&] { unix_listener::bind(path); }) == std::errc::address_in_use);
    }
    auto again = unix_listener::bind(path);  // closing has removed it
    again.close();
    std::ofstream(path) << "something else";
    CHECK(code_of([&] { unix_listener::bind(path); }) == std::errc::address_in_use);
    std::filesystem::remove(path);
  });
}

TEST_CASE("unix sockets: a listener removes its own path only") {
  namespace fs = std::filesystem;
  const fs::path folder = "/tmp/weft-net-test-own-" + std::to_string(::getpid()), before = fs::current_path();
  fs::create_directories(folder / "elsewhere");
  weft::run([&] {
    using weft::net::unix_listener;
    using weft::net::unix_stream;
    auto old = unix_listener::bind((folder / "taken").native());
    fs::remove(folder / "taken");
    auto heir = unix_listener::bind((folder / "taken").native());
    old.close();
    CHECK_NOTHROW(unix_stream::connect((folder / "taken").native()));

    fs::current_path(folder);
    auto relative = unix_listener::bind("relative");
    fs::current_path(folder / "elsewhere");
    std::ofstream("relative") << "of somebody";
    relative.close();
    CHECK(fs::exists("relative"));
    CHECK_FALSE(fs::exists(folder / "relative"));
    fs::current_path(before);
  });
  fs::remove_all(folder);
}

TEST_CASE("endpoint: a path is the same, however much follows it") {
  using weft::net::endpoint;
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  std::strcpy(a.sun_path, "/tmp/a");
  const std::size_t exactly = offsetof(sockaddr_un, sun_path) + 6;
  const endpoint all = endpoint::from_native(&a, sizeof a);
  for (std::size_t size : {exactly, exactly + 1}) {
    CHECK(endpoint::from_native(&a, size) == all);
    CHECK(std::hash<endpoint>()(endpoint::from_native(&a, size)) == std::hash<endpoint>()(all));
  }
  CHECK(endpoint::from_native(&a, exactly - 1) != all);
  a.sun_path[0] = '\0';  // of an abstract name every byte counts
  CHECK(endpoint::from_native(&a, exactly) != endpoint::from_native(&a, exactly + 1));
}

TEST_CASE("an endpoint that is not of the internet") {
  const sa_family_t none = AF_UNSPEC;
  const auto e = weft::net::endpoint::from_native(&none, sizeof none);
  weft::run([&] {
    CHECK(code_of([&] { udp_socket::connect(e); }) == std::errc::invalid_argument);
    CHECK(code_of([&] { udp_socket::bind(e); }) == std::errc::invalid_argument);
    CHECK(code_of([&] { tcp_stream::connect(e); }) == std::errc::invalid_argument);
    CHECK(code_of([&] { tcp_listener::bind(e); }) == std::errc::invalid_argument);
  });
}

TEST_CASE("remote_endpoint of a stream that was connected to the wildcard") {
  weft::run([] {
    auto l = tcp_listener::bind("127.0.0.1:0");
    auto c = tcp_stream::connect("0.0.0.0:" + std::to_string(l.local_endpoint().port()));
    CHECK(c.remote_endpoint() == l.local_endpoint());
  });
}

TEST_CASE("endpoint: from the system's form, and from none") {
  using weft::net::endpoint;
  const endpoint e = endpoint::parse("[::1]:80");
  CHECK(endpoint::from_native(e.data(), e.size()) == e);
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
    const std::vector<char> bytes(size + 1);
    CHECK(endpoint::from_native(bytes.data(), size) == endpoint());
  }
  CHECK(endpoint().to_string() == "0.0.0.0:0");
  CHECK_FALSE(e.is_unix());
}

TEST_CASE("goroutines that run() leaves behind in a socket") {
  tcp_listener l;
  std::string where;
  weft::run([&] {
    l = tcp_listener::bind("127.0.0.1:0");
    where = address_of(l);
    weft::go([&] { l.accept(); });
    weft::sleep(5ms);
  });
  weft::run([&] {
    auto before = steady::now();
    l.close();  // does not wait forever for the call that was left behind
    CHECK(steady::now() - before < 5s);
    CHECK(!l.is_open());
  });
}
