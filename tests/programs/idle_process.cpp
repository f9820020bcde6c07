// A process in which nothing happens makes no system call: none of its threads is switched to, for seconds. A thousand
// goroutines are parked in it, one goroutine waits for a connection, and a timer is far away.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <unistd.h>
#include <weft/net.hpp>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

namespace {

// Returns how often each thread was switched to, except for the calling one.
std::map<std::string, long> switches() {
  std::map<std::string, long> all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string id = task.path().filename();
    if (id == std::to_string(::gettid())) continue;
    std::ifstream status(task.path() / "status");
    for (std::string key; status >> key;) {
      long n;
      if (key.ends_with("voluntary_ctxt_switches:") && status >> n) all[id] += n;
    }
  }
  return all;
}

}  // namespace

int main() {
  return weft::run([] {
    weft::chan<void> gate;
    for (int i = 0; i < 1000; ++i) weft::go([=] { gate.recv(); });
    auto listener = weft::net::tcp_listener::bind("127.0.0.1:0");
    weft::go([&] {
      std::error_code ec;
      listener.accept(ec);
      gate.recv();
    });
    weft::after_func(1h, [] {});
    weft::chan<bool> quiet;
    std::thread watcher([=] {
      bool same = false;
      // At first there is something left to do, and threads that have nothing to do end only after some seconds.
      for (int i = 0; i < 6 && !same; ++i) {
        auto before = switches();
        std::this_thread::sleep_for(3s);
        auto after = switches();
        for (auto& [id, n] : after) std::fprintf(stderr, "thread %s: %ld\n", id.c_str(), n - before[id]);
        same = before == after;
      }
      quiet.send(same);
    });
    std::fprintf(stderr, "quiet: %d\n", *quiet.recv());
    watcher.join();
    listener.close();
    gate.close();
  });
}
