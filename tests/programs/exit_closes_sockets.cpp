// A goroutine calls exit(), which destroys global sockets that main and others wait in. They are woken with an error,
// and nothing comes of that.
#include <cstdio>
#include <cstdlib>
#include <weft/weft.hpp>

struct farewell {
  ~farewell() { std::fputs("farewell\n", stderr); }
} the_farewell;

weft::net::tcp_listener at_main, at_other;

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    at_main = weft::net::tcp_listener::bind("127.0.0.1:0");
    at_other = weft::net::tcp_listener::bind("127.0.0.1:0");
    weft::go([] { at_other.accept(); });
    weft::go([] {
      weft::sleep(5ms);
      std::exit(4);
    });
    std::error_code ec;
    at_main.accept(ec);
    return 5;
  });
}
