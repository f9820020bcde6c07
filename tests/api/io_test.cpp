#include "tests/support/catch.hpp"

#include <weft/chan.hpp>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/task.hpp>
#include <weft/time.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <span>
#include <string>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;
using weft::io::wait_readable;
using weft::io::wait_writable;

namespace {

using steady = std::chrono::steady_clock;

struct pipe_pair {
  int out, in;
  pipe_pair() {
    int fds[2];
    REQUIRE(::pipe2(fds, O_CLOEXEC) == 0);
    out = fds[0];
    in = fds[1];
  }
  ~pipe_pair() {
    ::close(out);
    ::close(in);
  }
  void put() const { REQUIRE(::write(in, "x", 1) == 1); }
  void take() const {
    char c;
    REQUIRE(::read(out, &c, 1) == 1);
  }
};

// How many bytes of each kind of buffer are written.
constexpr std::size_t size_of(weft::io::const_buffer b) { return b.size(); }
constexpr char unterminated[] = {'a', 'b', 'c'};
constexpr char with_room[8] = "ab";
constexpr char8_t unterminated8[] = {u8'a', u8'b'};
constexpr const char* pointer = "abcd";
static_assert(size_of("abc") == 3 && size_of("") == 0 && size_of("a\0b") == 1 && size_of(u8"ab") == 2);
static_assert(size_of(unterminated) == 3 && size_of(with_room) == 2 && size_of(unterminated8) == 2);
static_assert(size_of(pointer) == 4 && size_of(u8"abc" + 1) == 2);
static_assert(size_of(std::string_view("a\0b", 3)) == 3 && size_of(std::span(with_room)) == 8);
static_assert(size_of(std::array<char, 4>()) == 4 && size_of(std::string("a\0b", 3)) == 3);
static_assert(!std::is_constructible_v<weft::io::const_buffer, int> &&
              !std::is_convertible_v<int*, weft::io::const_buffer>);

}  // namespace

TEST_CASE("waiting for a pipe") {
  weft::run([] {
    pipe_pair p;
    CHECK(!wait_writable(p.in));
    for (int i = 0; i < 50; ++i) {
      auto reader = weft::spawn([&] { return wait_readable(p.out); });
      if (i % 2) weft::sleep(200us);
      p.put();
      CHECK(!reader.join());
      p.take();
    }
    p.put();
    CHECK(!wait_readable(p.out));  // at once
    CHECK(!wait_readable(p.out));  // and again: nothing was consumed
  });
}

TEST_CASE("waiting with a deadline") {
  weft::run([] {
    pipe_pair p;
    auto before = steady::now();
    CHECK(wait_readable(p.out, before + 20ms) == std::errc::timed_out);
    CHECK(steady::now() - before >= 20ms);
    CHECK(wait_readable(p.out, steady::now() - 1s) == std::errc::timed_out);
    CHECK(wait_readable(p.out, {}) == std::errc::timed_out);
    p.put();
    CHECK(wait_readable(p.out, steady::now() - 1s) == std::errc::timed_out);
    CHECK(!wait_readable(p.out, steady::now() + 10s));
    CHECK(!wait_readable(p.out, weft::time_point::max()));
  });
}

TEST_CASE("waiting to write") {
  weft::run([] {
    pipe_pair p;
    ::fcntl(p.in, F_SETFL, O_NONBLOCK);
    std::vector<char> block(65536);
    while (::write(p.in, block.data(), block.size()) > 0) {}
    CHECK(wait_writable(p.in, steady::now() + 10ms) == std::errc::timed_out);
    auto writer = weft::spawn([&] { return wait_writable(p.in); });
    weft::sleep(2ms);
    for (int i = 0; i < 8; ++i) REQUIRE(::read(p.out, block.data(), 4096) == 4096);
    CHECK(!writer.join());
  });
}

TEST_CASE("the end of a pipe, and what is no descriptor") {
  weft::run([] {
    CHECK(wait_readable(-1) == std::errc::bad_file_descriptor);
    CHECK(wait_readable(1 << 20) == std::errc::bad_file_descriptor);
    int fds[2];
    REQUIRE(::pipe2(fds, O_CLOEXEC) == 0);
    auto reader = weft::spawn([&] { return wait_readable(fds[0]); });
    weft::sleep(2ms);
    ::close(fds[1]);
    CHECK(!reader.join());
    ::close(fds[0]);

    int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK(!wait_readable(file));  // always ready
    ::close(file);
  });
}

TEST_CASE("several wait for one descriptor, also one of weft's sockets") {
  weft::run([] {
    int event = ::eventfd(0, EFD_CLOEXEC);
    std::vector<weft::task<std::error_code>> waiting;
    for (int i = 0; i < 5; ++i) waiting.push_back(weft::spawn([=] { return wait_readable(event); }));
    weft::sleep(5ms);
    std::uint64_t one = 1;
    REQUIRE(::write(event, &one, sizeof one) == sizeof one);
    for (auto& w : waiting) CHECK(!w.join());
    ::close(event);

    auto [a, b] = weft::net::unix_stream::pair();
    auto outside = weft::spawn([fd = a.native_handle()] { return wait_readable(fd); });
    auto inside = weft::spawn([&a = a] {
      char c[1];
      return a.read(c);
    });
    weft::sleep(2ms);
    b.close();
    CHECK(!outside.join());
    CHECK(inside.join() == 0);
  });
}

TEST_CASE("a descriptor closed while somebody waits for it, and its number used again") {
  weft::run([] {
    int fds[2];
    REQUIRE(::pipe2(fds, O_CLOEXEC) == 0);
    auto waiting = weft::spawn([=] { return wait_readable(fds[0], steady::now() + 50ms); });
    weft::sleep(5ms);
    ::close(fds[0]);
    ::close(fds[1]);                               // hangs up the copy on which the goroutine waits
    auto [a, b] = weft::net::unix_stream::pair();  // takes the two numbers
    CHECK(!waiting.join());
    auto reader = weft::spawn([&a = a] {
      char c[1];
      return a.read(c);
    });
    weft::sleep(2ms);
    b.write("x");
    CHECK(reader.join() == 1);
  });
}

TEST_CASE("without a number for a copy a descriptor is waited for all the same, and nobody else's is touched") {
  weft::run([] {
    pipe_pair p;
    int closed[2];
    REQUIRE(::pipe2(closed, O_CLOEXEC) == 0);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const int lowest = ::dup(0);
    ::close(lowest);
    const rlimit none{static_cast<rlim_t>(lowest), before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    auto readable = weft::spawn([&] { return wait_readable(p.out); });
    auto late = weft::spawn([&] { return wait_readable(closed[0], steady::now() + 50ms); });
    weft::sleep(10ms);
    ::close(closed[0]);
    ::close(closed[1]);
    auto [a, b] = weft::net::unix_stream::pair();  // with these numbers
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(late.join() == std::errc::timed_out);
    p.put();
    CHECK(!readable.join());
    char byte;
    a.set_read_deadline(steady::now() + 5s);
    b.set_read_deadline(steady::now() + 5s);
    auto reader = weft::spawn([&a = a, &byte] { return a.read({&byte, 1}); });
    weft::sleep(5ms);
    b.write("x");
    CHECK(reader.join() == 1);
    a.write("x");
    CHECK(b.read({&byte, 1}) == 1);
  });
}

TEST_CASE("waiting from a thread that weft did not start") {
  pipe_pair p;
  weft::run([&] {
    std::error_code ec = std::make_error_code(std::errc::io_error);
    std::thread other([&] { ec = wait_readable(p.out); });
    weft::sleep(10ms);
    p.put();
    weft::blocking([&] { other.join(); });
    CHECK(!ec);
  });
  CHECK(!wait_readable(p.out));  // ready: nothing to wait for
  p.take();
  std::error_code ec;
  std::thread other;
  weft::run([&] {
    other = std::thread([&] {
      try {
        ec = wait_readable(p.out);
      } catch (const std::logic_error&) {  // the call began after the end of run()
        ec = std::make_error_code(std::errc::operation_canceled);
      }
    });
    weft::sleep(10ms);
  });
  other.join();
  CHECK(ec == std::errc::operation_canceled);
  CHECK_THROWS_AS(wait_readable(p.out), std::logic_error);
}

// raise(), not kill(): under ThreadSanitizer, a handler runs only when its thread returns from a system call. A signal
// for the whole process would go to the main thread, which sleeps in run().
TEST_CASE("signals") {
  weft::run([] {
    auto c = weft::io::signal_channel({SIGUSR1, SIGUSR2});
    const std::vector<int> only_first{SIGUSR1};
    auto d = weft::io::signal_channel(only_first);
    ::raise(SIGUSR1);
    CHECK(*c.recv() == SIGUSR1);
    CHECK(*d.recv() == SIGUSR1);
    ::raise(SIGUSR2);
    CHECK(*c.recv() == SIGUSR2);
    weft::io::stop_signals(c);
    CHECK(!c.recv());
    ::raise(SIGUSR1);
    CHECK(*d.recv() == SIGUSR1);
    d.close();
    ::raise(SIGUSR1);  // no channel takes it, and nothing happens
    weft::io::stop_signals(d);
    weft::io::stop_signals(d);
  });
}

TEST_CASE("signals between and after runs, and what was there before comes back") {
  static volatile int counted = 0;
  struct sigaction mine {};
  mine.sa_handler = [](int) { counted = counted + 1; };
  ::sigaction(SIGUSR1, &mine, nullptr);
  weft::chan<int> c;
  weft::run([&] { c = weft::io::signal_channel({SIGUSR1}); });
  ::raise(SIGUSR1);
  CHECK(*c.recv() == SIGUSR1);
  weft::run([&] {
    weft::go([] { ::raise(SIGUSR1); });
    CHECK(*c.recv() == SIGUSR1);
  });
  CHECK(counted == 0);
  weft::io::stop_signals(c);
  ::raise(SIGUSR1);
  CHECK(counted == 1);
  ::signal(SIGUSR1, SIG_DFL);
}

TEST_CASE("signals: who gives SIGCHLD back takes no child's exit status away") {
  std::atomic<bool> over{false};
  std::thread gives_back([&] {
    while (!over) weft::io::stop_signals(weft::io::signal_channel({SIGCHLD}));
  });
  int lost = 0;
  for (int i = 0; i < 3000; ++i) {
    const pid_t child = ::vfork();
    if (child == 0) ::_exit(7);
    int status = 0;
    pid_t ended;
    while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {}
    lost += ended != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7;
  }
  over = true;
  gives_back.join();
  CHECK(lost == 0);
}

TEST_CASE("signals: the child of a fork() writes nothing where the pipe was") {
  auto c = weft::io::signal_channel({SIGUSR1});
  const pid_t child = ::fork();
  if (child == 0) {
    int files[4];
    for (int& f : files) f = ::memfd_create("file", 0);
    weft::io::stop_signals(c);
    int written = 0;
    for (int f : files) written += ::lseek(f, 0, SEEK_END) != 0;
    ::_exit(written);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  weft::io::stop_signals(c);
}

TEST_CASE("signals: given up after somebody has closed their pipe") {
  const pid_t child = ::fork();
  if (child == 0) {
    auto c = weft::io::signal_channel({SIGUSR1});
    for (int fd = 3; fd < 64; ++fd) ::close(fd);
    ::alarm(5);  // ends the child if the next call hangs
    weft::io::stop_signals(c);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
}

// The thread that reads the pipe is kept in a handler meanwhile; for a limited time, since it might hold a lock there.
TEST_CASE("signals: channels that come and go leave the pipe to the signals") {
  static std::atomic<bool> held{false}, over{false};
  auto c = weft::io::signal_channel({SIGUSR1, SIGUSR2});
  ::raise(SIGUSR1);
  CHECK(*c.recv() == SIGUSR1);
  ::usleep(10'000);  // now the thread reads
  sigset_t holds, mask;
  sigemptyset(&holds);
  sigaddset(&holds, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &holds, &mask);
  struct sigaction holder {
  }, channels{};
  holder.sa_handler = [](int) {
    held = true;
    for (int i = 0; i < 20'000 && !over; ++i) ::usleep(1000);
  };
  ::sigaction(SIGUSR2, &holder, &channels);
  ::kill(::getpid(), SIGUSR2);
  for (int i = 0; i < 5000 && !held; ++i) ::usleep(1000);
  CHECK(held);
  for (int i = 0; i < 40'000; ++i) weft::io::stop_signals(weft::io::signal_channel({SIGUSR1}));
  ::raise(SIGUSR1);
  over = true;
  int number = 0;
  for (int i = 0; i < 5000 && c.try_recv(number) != weft::recv_result::value; ++i) ::usleep(1000);
  CHECK(number == SIGUSR1);
  ::sigaction(SIGUSR2, &channels, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  weft::io::stop_signals(c);
}

TEST_CASE("signals that cannot be had") {
  auto refused = [](std::initializer_list<int> s) {
    try {
      (void)weft::io::signal_channel(s);
    } catch (const std::system_error& e) {
      return e.code() == std::errc::invalid_argument;
    }
    return false;
  };
  CHECK(refused({SIGKILL}));
  CHECK(refused({SIGUSR1, SIGSTOP}));
  CHECK(refused({0}));
  CHECK(refused({1000}));
  CHECK(refused({SIGSEGV}));
  CHECK(refused({}));
  for (int number : {SIGKILL, 1000}) {
    try {
      (void)weft::io::signal_channel({SIGUSR1, number});
    } catch (const std::system_error& e) {
      CHECK(std::string(e.what()).find("for signal " + std::to_string(number)) != std::string::npos);
    }
  }
  std::error_code ec;
  CHECK(weft::io::signal_channel({SIGKILL}, ec).is_nil());
  CHECK(ec == std::errc::invalid_argument);
  auto c = weft::io::signal_channel({SIGUSR1}, ec);
  CHECK(!ec);
  ::raise(SIGUSR1);
  CHECK(*c.recv() == SIGUSR1);
  weft::io::stop_signals(c);
  weft::io::stop_signals(weft::chan<int>(1));
}
