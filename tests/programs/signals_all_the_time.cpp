// A signal arrives every 200 µs, without SA_RESTART: no call of weft's may end because of it, nothing may be lost, and
// no sleep be cut short.
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <thread>
#include <unistd.h>
#include <weft/weft.hpp>

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

std::atomic<long> signals = 0;

void start_signals() {
  struct sigaction a {};
  a.sa_handler = [](int) { signals.fetch_add(1, std::memory_order_relaxed); };
  ::sigaction(SIGALRM, &a, nullptr);
  sigevent e{};
  e.sigev_notify = SIGEV_SIGNAL;
  e.sigev_signo = SIGALRM;
  timer_t t;
  ::timer_create(CLOCK_MONOTONIC, &e, &t);
  itimerspec every{{0, 200'000}, {0, 200'000}};
  ::timer_settime(t, 0, &every, nullptr);
}

void need(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::_Exit(1);
}

void sleeps(clock_type::time_point end) {
  while (clock_type::now() < end) {
    auto before = clock_type::now();
    weft::sleep(700us);
    need(clock_type::now() - before >= 700us, "a sleep lasts");
  }
}

void channels(clock_type::time_point end) {
  weft::chan<int> to, back{3};
  weft::task<void> other = weft::spawn([=] {
    for (int n : to) back.send(n);
    back.close();
  });
  for (int i = 0; clock_type::now() < end; ++i) {
    to.send(i);
    need(back.recv() == i, "what was sent comes back");
    int v;
    if (i % 64 == 0) need(back.recv_for(v, 300us) == weft::recv_result::empty, "a limit passes");
  }
  to.close();
  other.join();
}

void sockets(clock_type::time_point end) {
  auto l = weft::net::tcp_listener::bind("127.0.0.1:0");
  weft::task<void> server = weft::spawn([&] {
    auto s = l.accept();
    std::array<std::byte, 70'000> buffer;
    while (std::size_t n = s.read(buffer)) s.write(std::span(buffer).first(n));
  });
  auto c = weft::net::tcp_stream::connect("localhost:" + std::to_string(l.local_endpoint().port()), 5s);
  std::vector<std::byte> out(200'000), in(out.size());
  for (unsigned round = 0; clock_type::now() < end; ++round) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 31 + round);
    weft::task<void> writer = weft::spawn([&] { c.write(std::span(out)); });
    c.read_exactly(std::span(in));
    writer.join();
    need(in == out, "a stream carries what was written");
  }
  c.shutdown_write();
  server.join();
}

void pipes(clock_type::time_point end) {
  int fds[2];
  need(::pipe2(fds, O_NONBLOCK | O_CLOEXEC) == 0, "a pipe");
  for (char c = 0; clock_type::now() < end; ++c) {
    weft::task<void> writer = weft::spawn([&] {
      weft::sleep(300us);
      while (::write(fds[1], &c, 1) != 1) {}
    });
    need(!weft::io::wait_readable(fds[0]), "a pipe becomes readable");
    char got;
    while (::read(fds[0], &got, 1) != 1) {}
    need(got == c, "a pipe's byte");
    writer.join();
  }
  ::close(fds[0]);
  ::close(fds[1]);
}

// Threads that weft did not start wait by futexes of their own.
void threads(clock_type::time_point end) {
  weft::chan<int> c;
  weft::mutex m;
  int shared = 0;
  std::thread t([&] {
    for (int i = 0; clock_type::now() < end; ++i) {
      c.send(i);
      auto before = clock_type::now();
      weft::sleep(500us);
      need(clock_type::now() - before >= 500us, "a thread's sleep lasts");
      std::scoped_lock hold(m);
      ++shared;
    }
    c.close();
  });
  int n = 0;
  for (int v : c) {
    need(v == n++, "a thread's value");
    std::scoped_lock hold(m);
    weft::sleep(50us);
    --shared;
  }
  weft::blocking([&] { t.join(); });
  need(shared == 0, "a mutex guards");
}

}  // namespace

int main() {
  start_signals();
  int code = weft::run([] {
    auto end = clock_type::now() + 1500ms;
    weft::task_group all;
    for (auto* what : {sleeps, channels, sockets, pipes, threads}) all.go(what, end);
    all.wait();
    return 12;
  });
  need(signals > 100, "signals came");
  return code;
}
