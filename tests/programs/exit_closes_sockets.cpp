// A goroutine calls exit(), which destroys static sockets that main and others wait in. They are woken with an error.
// An exception ends one of them without a report, and a destructor waits for that. Main's value does not count, however
// long the exit takes.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

struct farewell {
  ~farewell() {
    std::this_thread::sleep_for(1500ms);
    std::fputs("farewell\n", stderr);
  }
} the_farewell;

weft::net::tcp_listener at_main;
weft::mutex held;
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
  return weft::run(
      [] {
        at_main = weft::net::tcp_listener::bind("127.0.0.1:0");
        static server s{weft::net::tcp_listener::bind("127.0.0.1:0")};
        others.go([] {
          const std::lock_guard lock(held);
          s.listener.accept();
        });
        weft::go([] {
          while (weft::runtime_stats().waiting < 2) weft::sleep(1ms);  // the two others
          std::exit(4);
        });
        std::error_code ec;
        at_main.accept(ec);
        return 5;
      },
      {.shutdown_grace = 0ms});
}
