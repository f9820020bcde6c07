// A goroutine calls exit(), which destroys static sockets that main and others wait in. They are woken with an error.
// Main returns too late for its value to count, and an exception ends the other without a report. A destructor waits
// for that.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <weft/weft.hpp>

struct farewell {
  ~farewell() { std::fputs("farewell\n", stderr); }
} the_farewell;

weft::net::tcp_listener at_main;
std::mutex held;
weft::wait_group others;

struct server {
  weft::net::tcp_listener listener;
  ~server() {
    listener.close();
    others.wait();
    const std::lock_guard lock(held);
  }
};

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    at_main = weft::net::tcp_listener::bind("127.0.0.1:0");
    static server s{weft::net::tcp_listener::bind("127.0.0.1:0")};
    others.go([] {
      const std::lock_guard lock(held);
      s.listener.accept();
    });
    weft::go([] {
      weft::sleep(5ms);
      std::exit(4);
    });
    std::error_code ec;
    at_main.accept(ec);
    return 5;
  });
}
