// What the end of a run() does to sockets, and to threads that are not goroutines and wait in a socket.
#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace weft::test;
using weft::net::tcp_listener;
using weft::net::tcp_stream;

namespace {

struct connection {
  tcp_stream client, server;
  static connection make() {
    auto l = tcp_listener::bind("127.0.0.1:0");
    auto c = tcp_stream::connect(l.local_endpoint());
    return {std::move(c), l.accept()};
  }
};

// A thread that makes one call, and the outcome of that call.
class caller {
 public:
  explicit caller(std::function<void(std::error_code&)> call)
      : thread_([this, call = std::move(call)] {
          call(ec_);
          done_ = true;
        }) {}
  // Waits for the call's end, and returns its outcome. Called outside of a run(). If the call still waits after 5 s,
  // the test fails.
  std::error_code result() {
    for (int i = 0; i < 5000 && !done_; ++i) ::usleep(1000);
    if (!done_) {
      thread_.detach();
      FAIL("the thread still waits");
    }
    thread_.join();
    return ec_;
  }

 private:
  std::error_code ec_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

std::error_code at_the_end_of_run(const std::function<void()>& before, std::function<void(std::error_code&)> call) {
  std::unique_ptr<caller> c;
  weft::run([&] {
    before();
    c = std::make_unique<caller>(std::move(call));
    weft::sleep(50ms);
  });
  return c->result();
}

}  // namespace

TEST_CASE("run() ends: a thread whose turn to read a goroutine has") {
  static connection c;
  auto others = [] {
    c = connection::make();
    weft::go([] {
      char byte;
      std::error_code ec;
      c.client.read({&byte, 1}, ec);
    });
    weft::sleep(a_while);
  };
  CHECK(at_the_end_of_run(others, [](std::error_code& ec) {
          char byte;
          c.client.read({&byte, 1}, ec);
        }) == std::errc::operation_canceled);
  c.client.close();
}

TEST_CASE("run() ends: a socket that a goroutine was about to close is open, and others can close it",
          "[leaves-threads]") {
  struct state {
    connection c;
    std::atomic<bool> computes{false}, over{false}, closes{false};
  };
  auto s = std::make_shared<state>();
  std::unique_ptr<caller> first, second;
  auto read = [s](std::error_code& ec) {
    char byte;
    s->c.client.read({&byte, 1}, ec);
  };
  weft::run(
      [&] {
        s->c = connection::make();
        weft::go([s] {
          s->computes = true;
          while (!s->over) {}
          s->closes = true;
          s->c.client.close();
        });
        while (!s->computes) weft::yield();
        first = std::make_unique<caller>(read);
        weft::sleep(20ms);
        second = std::make_unique<caller>(read);
        weft::sleep(20ms);
      },
      {.procs = 2, .shutdown_grace = 0s});
  s->over = true;
  for (int i = 0; i < 5000 && !s->closes; ++i) ::usleep(1000);
  REQUIRE(s->closes);
  ::usleep(5'000);
  CHECK(first->result() == std::errc::operation_canceled);
  CHECK(second->result() == std::errc::operation_canceled);
  CHECK(s->c.client.is_open());
  s->c.client.close();
  char byte;
  CHECK(::recv(s->c.server.native_handle(), &byte, 1, 0) == 0);
}

TEST_CASE("run() ends: a thread whose turn to accept a thread has") {
  static tcp_listener l;
  std::unique_ptr<caller> first, second;
  weft::run([&] {
    l = tcp_listener::bind("127.0.0.1:0");
    first = std::make_unique<caller>([](std::error_code& ec) { l.accept(ec); });
    weft::sleep(50ms);
    second = std::make_unique<caller>([](std::error_code& ec) { l.accept(ec); });
    weft::sleep(50ms);
  });
  CHECK(first->result() == std::errc::operation_canceled);
  CHECK(second->result() == std::errc::operation_canceled);
  l.close();
}

TEST_CASE("run() ends: threads that look names up") {
  std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<caller>> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(std::make_unique<caller>([&](std::error_code& ec) {
      while (!stop) {
        try {
          weft::net::resolve("localhost", "80", ec);
        } catch (const std::logic_error&) {
          ::usleep(100);  // no run() just now
        }
      }
    }));
  }
  for (int i = 0; i < 60; ++i) weft::run([i] { weft::sleep(i % 4 * 1ms); });
  stop = true;
  for (auto& c : callers) c->result();
}

TEST_CASE("run() ends: a thread that looks for room in the queue of a unix socket") {
  static weft::net::unix_listener l;
  const std::string path = "@weft-run-end-" + std::to_string(::getpid());
  std::vector<int> waiting;
  auto fill = [&] {
    l = weft::net::unix_listener::bind(path, {.backlog = 1});
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    std::memcpy(a.sun_path + 1, path.data() + 1, path.size() - 1);
    for (int i = 0; i < 3; ++i) {
      waiting.push_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
      ::connect(waiting.back(), reinterpret_cast<sockaddr*>(&a),
                static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size()));
    }
  };
  CHECK(at_the_end_of_run(fill, [&](std::error_code& ec) { weft::net::unix_stream::connect(path, ec); }) ==
        std::errc::operation_canceled);
  for (int fd : waiting) ::close(fd);
  l.close();
}

TEST_CASE("run() ends: deadlines of sockets go on") {
  connection c;
  char byte;
  std::error_code ec;
  weft::run([&] {
    c = connection::make();
    c.client.set_read_deadline(clock::now() + 20ms);
  });
  ::usleep(40'000);
  weft::run([&] {
    c.server.write("x");
    weft::sleep(a_while);
    CHECK(c.client.read({&byte, 1}, ec) == 0);
    CHECK(ec == std::errc::timed_out);
    c.client.set_read_deadline(clock::now() + 200ms);
  });
  weft::run([&] {
    CHECK(c.client.read({&byte, 1}, ec) == 1);  // the byte from the second run()
    auto limit = weft::after_func(late, [&] { c.client.close(); });
    c.client.read({&byte, 1}, ec);
    CHECK(ec == std::errc::timed_out);
    limit.stop();
  });
}

TEST_CASE("run() ends: who was about to change a socket is no user of it, for which close() would wait",
          "[leaves-threads]") {
  for (auto change :
       {+[](tcp_stream& s) { s.set_deadline(clock::now() + 1h); }, +[](tcp_stream& s) { s.shutdown_write(); }}) {
    struct state {
      connection c;
      std::atomic<bool> computes{false}, over{false}, changes{false};
    };
    auto s = std::make_shared<state>();
    weft::run(
        [&] {
          s->c = connection::make();
          weft::go([s, change] {
            s->computes = true;
            while (!s->over) {}
            s->changes = true;
            change(s->c.client);
          });
          while (!s->computes) weft::yield();
        },
        {.procs = 2, .shutdown_grace = 0s});
    s->over = true;
    for (int i = 0; i < 5000 && !s->changes; ++i) ::usleep(1000);
    REQUIRE(s->changes);
    ::usleep(5'000);
    const auto begin = clock::now();
    s->c.client.close();
    CHECK(clock::now() - begin < 500ms);
  }
}

TEST_CASE("run() ends: close() waits for the threads that leave the socket") {
  for (int i = 0; i < fewer(200); ++i) {
    tcp_listener l;
    std::unique_ptr<caller> accepts;
    weft::run([&] {
      l = tcp_listener::bind("127.0.0.1:0");
      accepts = std::make_unique<caller>([&](std::error_code& ec) {
        try {
          l.accept(ec);
        } catch (const std::logic_error&) {  // it comes when the run() is over
          ec = std::make_error_code(std::errc::operation_canceled);
        }
      });
      weft::sleep(1ms);
    });
    const int fd = l.native_handle();
    l.close();
    const bool is_closed = ::fcntl(fd, F_GETFD) == -1;
    REQUIRE(accepts->result());
    REQUIRE(is_closed);
  }
}

TEST_CASE("run() ends: who stops the world") {
  std::atomic<bool> stop{false};
  auto change = [&](std::error_code&) {
    for (unsigned n = 1; !stop; n = 3 - n) {
      try {
        weft::set_procs(n);
      } catch (const std::logic_error&) {
        ::usleep(100);  // no run() just now
      }
    }
  };
  caller procs(change);
  caller dumps([&](std::error_code&) {
    std::FILE* nowhere = std::fopen("/dev/null", "w");
    while (!stop) weft::dump_goroutines(nowhere);
    std::fclose(nowhere);
  });
  for (int i = 0; i < fewer(300); ++i) {
    weft::run([i] {
      for (int k = 0; k < 4; ++k) {
        weft::go([] {
          for (unsigned n = 1;; n = 3 - n) weft::set_procs(n);
        });
      }
      weft::sleep(i % 4 * 300us);
    });
  }
  stop = true;
  procs.result();
  dumps.result();
}

TEST_CASE("run() ends: who only asks stops, too") {
  static weft::chan<int> empty;
  auto [ctx, cancel] = weft::with_cancel(weft::background());
  const std::vector<std::pair<const char*, std::function<void()>>> questions{
      {"try_recv",
       [] {
         int got;
         (void)empty.try_recv(got);
       }},
      {"try_send", [] { (void)empty.try_send(1); }},
      {"select with default", [] { weft::select(weft::on_recv(empty), weft::on_default()); }},
      {"err", [&c = ctx] { (void)c.err(); }},
      {"sleep of nothing", [] { weft::sleep(0ms); }},
      {"try_recv of nil",
       [] {
         int got;
         (void)weft::chan<int>(weft::nil).try_recv(got);
       }},
      {"try_send of nil", [] { (void)weft::chan<int>(weft::nil).try_send(1); }},
      {"select of nil with default",
       [] { weft::select(weft::on_recv(weft::chan<int>(weft::nil)), weft::on_default()); }},
  };
  for (const auto& [name, ask] : questions) {
    INFO(name);
    auto asked = std::make_shared<std::atomic<long>>(0);
    auto ended = weft::test::clock::now();
    weft::run(
        [&, &what = ask] {
          weft::go([asked, what] {
            for (;; ++*asked) what();
          });
          weft::sleep(20ms);
          ended = weft::test::clock::now();
        },
        {.shutdown_grace = 10s});
    CHECK(weft::test::clock::now() - ended < 5s);
    long then = *asked;
    ::usleep(10'000);
    CHECK(*asked == then);
  }
}

TEST_CASE("run() ends: who was left behind goes no further than its next call", "[leaves-threads]") {
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"go", [] { weft::go([] {}); }},
      {"after_func", [] { weft::after_func(1h, [] {}); }},
      {"timer", [] { weft::timer t(1h); }},
      {"set_procs", [] { weft::set_procs(1); }},
      {"listen", [] { tcp_listener::bind("127.0.0.1:0"); }},
      {"connect", [] { tcp_stream::connect("127.0.0.1:1"); }},
      {"resolve", [] { weft::net::resolve("localhost", "80"); }},
      {"wait_readable", [] { (void)weft::io::wait_readable(0); }},
      {"run", [] { weft::run([] {}); }},
  };
  for (const auto& [name, call] : calls) {
    INFO(name);
    struct progress {
      std::atomic<bool> computes{false}, over{false}, calls{false}, returned{false};
    };
    auto p = std::make_shared<progress>();
    weft::run(
        [p, &what = call] {
          weft::go([p, what] {
            p->computes = true;
            while (!p->over) {}
            p->calls = true;
            what();  // must not throw either: that would end the process
            p->returned = true;
          });
          while (!p->computes) weft::yield();
        },
        {.procs = 2, .shutdown_grace = 0s});
    p->over = true;
    for (int i = 0; i < 5000 && !p->calls; ++i) ::usleep(1000);
    REQUIRE(p->calls);
    ::usleep(5'000);
    CHECK(!p->returned);
  }
}

namespace {

struct slow_to_destroy {
  ~slow_to_destroy() {
    if (!used) return;
    ::usleep(2'000'000);
    ++destroyed;
  }
  bool used = false;
  static inline std::atomic<int> destroyed{0};
};
thread_local slow_to_destroy of_thread;

}  // namespace

TEST_CASE("run() ends: it does not wait for what a thread's own variables do when they are destroyed") {
  auto began = weft::test::clock::now();
  weft::run([] { of_thread.used = true; }, {.procs = 1, .shutdown_grace = 0s});
  CHECK(weft::test::clock::now() - began < 1700ms);
  if (!under_tsan) {  // a child of fork() does not have that thread, and must not wait for it
    const pid_t child = ::fork();
    if (child == 0) {
      weft::run([] { weft::sleep(30ms); });
      ::_exit(0);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  for (int i = 0; i < 5000 && slow_to_destroy::destroyed == 0; ++i) ::usleep(1000);
  CHECK(slow_to_destroy::destroyed == 1);
  weft::run([] {});  // joins that thread
}

TEST_CASE("run() ends: who is about to lock its thread does not get an error for that") {
  for (int i = 0; i < fewer(2000); ++i) {
    weft::run(
        [] {
          for (int k = 0; k < 2; ++k) {
            weft::go([] {
              weft::lock_os_thread();
              weft::yield();
            });
          }
          weft::yield();
        },
        {.procs = 2});
  }
}

namespace {

// Runs a run() whose main has ended and that waits for a goroutine which computes; `others` also wait in it. Meanwhile
// a plain thread calls `then`. It has called `first` before the run() began.
void while_a_run_ends(const std::function<void()>& first, const std::function<void()>& others,
                      const std::function<void()>& then) {
  std::atomic<bool> has_begun{false}, ends{false};
  caller thread([&](std::error_code&) {
    first();
    has_begun = true;
    while (!ends) ::usleep(1000);
    ::usleep(20'000);
    then();
  });
  while (!has_begun) ::usleep(1000);
  weft::run(
      [&] {
        others();
        weft::sleep(a_while);
        weft::go([&] {
          ends = true;
          compute_for(200ms);
        });
        while (!ends) weft::yield();
      },
      {.procs = 2, .shutdown_grace = 30s});
  (void)thread.result();
}

template <class Lock>
void lock_while_a_run_ends(Lock& l, void (Lock::*lock)(), void (Lock::*unlock)()) {
  while_a_run_ends([&] { (l.*lock)(); }, [&] { weft::go([&] { (l.*lock)(); }); },
                   [&] {
                     (l.*unlock)();
                     (l.*lock)();
                     (l.*unlock)();
                   });
}

}  // namespace

TEST_CASE("run() ends: goroutines that will never run are given nothing, while one still computes") {
  SECTION("mutex") {
    weft::mutex m;
    lock_while_a_run_ends(m, &weft::mutex::lock, &weft::mutex::unlock);
  }
  SECTION("shared_mutex") {
    weft::shared_mutex m;
    lock_while_a_run_ends(m, &weft::shared_mutex::lock, &weft::shared_mutex::unlock);
  }
  SECTION("semaphore") {
    weft::semaphore s(1);
    while_a_run_ends([&] { s.acquire(); }, [&] { weft::go([&] { s.acquire(2); }); },
                     [&] {
                       s.release();
                       s.acquire();
                     });
  }
  SECTION("channel") {
    weft::chan<int> c;
    std::atomic<bool> waits{false};
    int got = 0;
    std::thread receiver([&, c] {
      while (!waits) ::usleep(1000);
      ::usleep(1000);
      got = c.recv().value_or(-1);
    });
    while_a_run_ends([] {},
                     [&] {
                       weft::go([c] { (void)c.recv(); });
                       weft::sleep(1ms);
                       waits = true;
                     },
                     [&] { c.send(42); });
    receiver.join();
    CHECK(got == 42);
  }
  SECTION("condition_variable") {
    weft::mutex m;
    weft::condition_variable changed;
    bool ready = false;
    std::atomic<bool> waits{false};
    caller waiter([&](std::error_code&) {
      while (!waits) ::usleep(1000);
      std::unique_lock lock(m);
      changed.wait(lock, [&] { return ready; });
    });
    while_a_run_ends([] {},
                     [&] {
                       weft::go([&] {
                         std::unique_lock lock(m);
                         changed.wait(lock);
                       });
                       weft::sleep(1ms);
                       waits = true;
                     },
                     [&] {
                       std::scoped_lock lock(m);
                       ready = true;
                       changed.notify_one();
                     });
    (void)waiter.result();
  }
  SECTION("and a plain thread starts none") {
    weft::wait_group w;
    while_a_run_ends([] {}, [] {},
                     [&] {
                       CHECK_THROWS_AS(w.go([] {}), std::logic_error);
                       w.wait();
                     });
  }
}

namespace {

struct waits_at_the_end {
  ~waits_at_the_end() {
    for (int i = 0; i < 1000; ++i) {
      c.send(i);
      (void)c.recv();
    }
    ++ended;
  }
  weft::chan<int> c{1};
  bool used = false;
  static inline int ended = 0;
};
weft::local<waits_at_the_end> of_main;

}  // namespace

TEST_CASE("run() ends: main's locals are destroyed before") {
  for (int i = 0; i < 100; ++i) weft::run([] { of_main->used = true; });
  CHECK(waits_at_the_end::ended == 100);
  CHECK_THROWS_AS(weft::run([] {
                    of_main->used = true;
                    throw std::runtime_error("main");
                  }),
                  std::runtime_error);
  CHECK(waits_at_the_end::ended == 101);
}
