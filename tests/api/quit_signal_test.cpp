// Both run(), for its dump, and signal channels use SIGQUIT. These tests check that channels take precedence, and
// what is left when they let go of the signal; programs/sigquit*.cpp test the dump.

#include "api/src/quit_signal.hpp"
#include "tests/support/catch.hpp"

#include <weft/chan.hpp>
#include <weft/io.hpp>
#include <weft/runtime.hpp>
#include <weft/time.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>
#include <stdexcept>
#include <thread>

using namespace std::chrono_literals;

namespace {

// Sets SIGQUIT's default disposition: shells make programs in the background ignore the signal.
struct default_quit {
  struct sigaction before {};
  default_quit() {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(SIGQUIT, &action, &before);
  }
  ~default_quit() { ::sigaction(SIGQUIT, &before, nullptr); }
};

auto handler() {
  struct sigaction now {};
  ::sigaction(SIGQUIT, nullptr, &now);
  return now.sa_handler;
}

// raise() and not kill(): see "signals" in io_test.cpp.
bool receives(const weft::chan<int>& c) {
  ::raise(SIGQUIT);
  int number = 0;
  return c.recv_for(number, 10s) == weft::recv_result::value && number == SIGQUIT;
}

}  // namespace

TEST_CASE("a channel that is there before run() has SIGQUIT during it and after it") {
  default_quit restored;
  auto c = weft::io::signal_channel({SIGQUIT});
  for (int i = 0; i < 3; ++i) {
    CHECK(receives(c));
    weft::run([&] { CHECK(receives(c)); });
  }
  weft::io::stop_signals(c);
  CHECK(handler() == SIG_DFL);
}

TEST_CASE("a channel that is made during a run() has SIGQUIT after it, too") {
  default_quit restored;
  weft::chan<int> c{weft::nil};
  weft::run([&] {
    c = weft::io::signal_channel({SIGQUIT});
    CHECK(receives(c));
  });
  CHECK(receives(c));
  weft::run([&] { CHECK(receives(c)); });
  weft::io::stop_signals(c);
  CHECK(handler() == SIG_DFL);
}

TEST_CASE("the last channel that lets go of SIGQUIT during a run() leaves it to the dump") {
  default_quit restored;
  auto c = weft::io::signal_channel({SIGQUIT}), d = weft::io::signal_channel({SIGQUIT, SIGUSR1});
  auto of_channels = handler();
  weft::run([&] {
    weft::io::stop_signals(c);
    CHECK(receives(d));
    weft::io::stop_signals(d);
    CHECK(handler() != SIG_DFL);
    CHECK(handler() != of_channels);
    c = weft::io::signal_channel({SIGQUIT});
    CHECK(receives(c));
    weft::io::stop_signals(c);
    CHECK(handler() != of_channels);
  });
  CHECK(handler() == SIG_DFL);
}

TEST_CASE("a handler of the user's comes back after channels and run()s") {
  default_quit restored;
  void (*mine)(int) = [](int) {};
  ::signal(SIGQUIT, mine);
  weft::run([] { CHECK(true); });
  CHECK(handler() == mine);
  auto c = weft::io::signal_channel({SIGQUIT});
  weft::run([] {});
  weft::io::stop_signals(c);
  CHECK(handler() == mine);
  weft::run([&] { c = weft::io::signal_channel({SIGQUIT}); });
  weft::io::stop_signals(c);
  CHECK(handler() == mine);
  weft::run(
      [&] {
        CHECK(handler() == mine);
        c = weft::io::signal_channel({SIGQUIT});
        CHECK(receives(c));
        weft::io::stop_signals(c);
        CHECK(handler() == mine);
      },
      {.sigquit_dump = false});
}

// A run() may give the signal back after a run() of another thread has begun.
TEST_CASE("two run()s that overlap at their ends") {
  default_quit restored;
  using weft::detail::quit_signal_scope;
  std::optional<quit_signal_scope> first(true);
  auto dump = handler();
  CHECK(dump != SIG_DFL);
  std::optional<quit_signal_scope> second(true);
  first.reset();
  CHECK(handler() == dump);
  first.emplace(false);
  second.reset();
  CHECK(handler() == SIG_DFL);
  second.emplace(true);
  first.reset();
  CHECK(handler() == dump);
  second.reset();
  CHECK(handler() == SIG_DFL);
}

TEST_CASE("run()s of several threads, one after the other") {
  default_quit restored;
  std::atomic<int> without_dump = 0;
  auto runs = [&] {
    for (int i = 0; i < 50;) {
      try {
        weft::run([&] { without_dump += handler() == SIG_DFL; });
        ++i;
      } catch (const std::logic_error&) {
        std::this_thread::yield();  // the run() of the other thread is not over
      }
    }
  };
  std::thread a(runs), b(runs);
  a.join();
  b.join();
  CHECK(without_dump == 0);
  CHECK(handler() == SIG_DFL);
}
