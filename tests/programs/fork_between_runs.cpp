// fork() between two run()s: parent and child each have a poller of their own, and signals. What was opened before can
// be used in both, and closing it in the child takes nothing from the parent, not even the path of a unix listener.
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <weft/weft.hpp>

using namespace std::chrono_literals;
using weft::net::tcp_listener;
using weft::net::tcp_stream;

namespace {

struct pair {
  std::optional<tcp_stream> near, far;
};

pair connect() {
  pair p;
  auto l = tcp_listener::bind("127.0.0.1:0");
  p.near.emplace(tcp_stream::connect(l.local_endpoint()));
  p.far.emplace(l.accept());
  return p;
}

void limit(pair& p) {
  for (auto* s : {&*p.near, &*p.far}) s->set_deadline(std::chrono::steady_clock::now() + 10s);
}

// Each read waits for the poller.
void talk(pair& p) {
  limit(p);
  auto echo = weft::spawn([&] {
    std::array<char, 1> byte;
    for (int i = 0; i < 100; ++i) {
      p.far->read_exactly(std::span<char>(byte));
      if (i % 10 == 0) weft::sleep(100us);
      p.far->write(std::span<const char>(byte));
    }
  });
  std::array<char, 1> byte{'x'};
  for (int i = 0; i < 100; ++i) {
    p.near->write(std::span<const char>(byte));
    p.near->read_exactly(std::span<char>(byte));
  }
  echo.join();
}

bool signal_comes() {
  auto signals = weft::io::signal_channel({SIGUSR1});
  ::kill(::getpid(), SIGUSR1);
  int number = 0;
  bool came = signals.recv_for(number, 10s) == weft::recv_result::value && number == SIGUSR1;
  weft::io::stop_signals(signals);
  return came;
}

// Called in parent and child at the same time.
int both(pair& before) {
  try {
    return weft::run([&] {
      weft::wait_group all;
      for (int i = 0; i < 10; ++i) {
        all.go([] {
          pair p = connect();
          talk(p);
        });
      }
      if (before.near) all.go([&] { talk(before); });
      all.wait();
      return signal_comes() ? 0 : 1;
    });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}

std::size_t threads() {
  std::filesystem::directory_iterator all("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Waits first until the thread that fed signal channels has ended.
pid_t fork_when_alone(std::size_t at_first) {
  while (threads() > at_first) ::usleep(1000);
  return ::fork();
}

int wait_for(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

}  // namespace

int main() {
  const std::size_t at_first = threads();
  pair childs, parents;
  const std::string path = "/tmp/weft-fork-" + std::to_string(::getpid());
  weft::net::unix_listener at_path;
  bool came = weft::run([&] {
    at_path = weft::net::unix_listener::bind(path);
    childs = connect();
    parents = connect();
    return signal_comes() ? 1 : 0;
  });
  pid_t child = fork_when_alone(at_first);
  if (child == 0) {
    parents = {};
    at_path.close();
    int result = both(childs);
    if (pid_t grandchild = fork_when_alone(at_first); grandchild == 0) {
      _exit(both(childs));
    } else {
      result += wait_for(grandchild);
    }
    _exit(result);
  }
  childs = {};
  int result = both(parents);
  result += wait_for(child);
  if (!std::filesystem::exists(path)) result += 3;
  at_path.close();
  if (std::filesystem::exists(path)) result += 4;
  return result == 0 && came ? 7 : result;
}
