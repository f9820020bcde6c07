// Everything that can hold up a scheduler, for a long time: goroutines that compute, that block in calls which they
// announce or do not, that sleep, talk over channels and sockets, start others and lock threads; and foreign threads
// that talk to them. Meanwhile the number of Ps changes between 1 and 4, and signals rain on every thread of the
// process, so that each system call is interrupted now and then.
//
//   sched_soak [--seconds=N] [--seed=N]     3 seconds in the suite; by hand: --seconds=600
//
// Exit code 0 and the counts, or 1 and what was wrong. What must hold:
//   - Every goroutine that was started ends, every task has its result.
//   - Every value that was sent is received, once; every byte that was written is echoed, in order.
//   - What locks protect is counted right.
//   - No sleep ends early, no call of weft reports a signal.
//   - Something always goes on: if nothing does for 60 s, every goroutine is shown.

#include "tests/stress/soak_arguments.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <sys/syscall.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include <weft/weft.hpp>

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using weft::recv_result;

std::uint64_t seed = 1;
std::atomic<bool> over{false};
std::atomic<bool> rain_over{false};

std::atomic<long> wrong{0};
void fault(const char* what, long long value = 0) {
  if (wrong.fetch_add(1) < 20) std::fprintf(stderr, "sched_soak: %s (%lld)\n", what, value);
}

struct account {
  std::atomic<long> in{0}, out{0};
};
account goroutines, tasks, values, foreign_values, bytes, pipe_bytes;
std::atomic<long> hogs{0}, blocked{0}, announced{0}, sleeps{0}, connections{0}, procs_changed{0}, locked{0};
std::atomic<long> interrupted{0}, signals{0};
std::atomic<long> steps{0};

class dice {
 public:
  explicit dice(std::uint64_t who) : random_(seed * 1000003 + who) {}
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::chrono::microseconds us(unsigned most) { return std::chrono::microseconds(below(most)); }

 private:
  std::mt19937_64 random_;
};

void compute_for(clock::duration d) {
  for (auto end = clock::now() + d; clock::now() < end;) {}
}

// --- signals

void on_signal(int) { signals.fetch_add(1, std::memory_order_relaxed); }

// Sends signals to threads of the process, which it chooses at random.
void rain() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  dice d(77);
  while (!rain_over) {
    std::vector<int> threads;
    std::error_code gone;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
      threads.push_back(std::atoi(task.path().filename().c_str()));
    }
    for (int i = 0; i < 20 && !threads.empty(); ++i) {
      ::syscall(SYS_tgkill, ::getpid(), threads[d.below(static_cast<unsigned>(threads.size()))], SIGUSR1);
      std::this_thread::sleep_for(d.us(500));
    }
  }
}

void let_it_rain() {
  struct sigaction a {};
  a.sa_handler = on_signal;  // without SA_RESTART
  ::sigaction(SIGUSR1, &a, nullptr);
  ::sigaction(SIGALRM, &a, nullptr);
  itimerval every{};
  every.it_interval.tv_usec = every.it_value.tv_usec = 700;
  ::setitimer(ITIMER_REAL, &every, nullptr);
}

// Calls f until it is not interrupted.
template <class F>
auto again(F f) {
  for (;;) {
    auto r = f();
    if (r >= 0 || errno != EINTR) return r;
    ++interrupted;
  }
}

// Blocks the thread for the whole time, whatever signals come. Does not use weft's sleep: the thread itself sleeps.
// noinline, as errno belongs to the thread.
__attribute__((noinline)) void block_thread(std::chrono::microseconds d) {
  timespec t{0, static_cast<long>(d.count()) * 1000};
  while (::nanosleep(&t, &t) != 0) {
    if (errno != EINTR) return fault("nanosleep", errno);
    ++interrupted;
  }
}

__attribute__((noinline)) bool read_byte(int fd, unsigned char* b) {
  return again([=] { return ::read(fd, b, 1); }) == 1;
}
__attribute__((noinline)) bool write_byte(int fd, unsigned char b) {
  return again([=] { return ::write(fd, &b, 1); }) == 1;
}

// --- goroutines

// Starts a goroutine, and counts it.
template <class F>
void start(weft::wait_group& w, F f) {
  ++goroutines.in;
  w.go([f = std::move(f)]() mutable {
    f();
    ++goroutines.out;
  });
}

void hold_up(dice& d) {
  switch (d.below(24)) {
    case 0:
      compute_for(d.us(d.below(6) == 0 ? 30000 : 3000));
      ++hogs;
      break;
    case 1:
      block_thread(d.us(d.below(6) == 0 ? 30000 : 3000));
      ++blocked;
      break;
    case 2:
      weft::blocking([&] { block_thread(d.us(3000)); });
      ++announced;
      break;
    case 3:
    case 4: {
      auto until = clock::now() + d.us(2000);
      weft::sleep_until(until);
      if (clock::now() < until) fault("a sleep ended early");
      ++sleeps;
      break;
    }
    case 5:
    case 6: weft::yield(); break;
    case 7: {
      auto d1 = d.us(500);
      auto until = clock::now() + d1;
      weft::sleep(d1);
      if (clock::now() < until) fault("a sleep ended early");
      ++sleeps;
      break;
    }
    default: break;
  }
}

struct shared {
  std::vector<weft::chan<long>> chans;
  weft::mutex m;
  long counted = 0;  // guarded by m
  std::atomic<long> to_count{0};
};

void send_or_receive(shared& s, dice& d, account& a) {
  auto& c = s.chans[d.below(static_cast<unsigned>(s.chans.size()))];
  long v = d.below(1000) + 1;
  switch (d.below(4)) {
    case 0:
      if (c.send_for(v, d.us(1000))) a.in += v;
      break;
    case 1:
      if (c.try_send(v)) a.in += v;
      break;
    case 2: {
      long got;
      if (c.recv_for(got, d.us(1000)) == recv_result::value) values.out += got;
      break;
    }
    default: {
      auto& other = s.chans[d.below(static_cast<unsigned>(s.chans.size()))];
      auto take = [](std::optional<long> got) { values.out += got.value_or(0); };
      weft::select(weft::on_recv(c, take), weft::on_recv(other, take), weft::on_timeout(d.us(1000)));
    }
  }
}

// A task of tasks: returns how many there are.
long family(dice& d, int depth) {
  hold_up(d);
  if (depth == 0) return 1;
  long n = 1;
  std::vector<weft::task<long>> children;
  for (unsigned i = d.below(3); i-- > 0;) {
    ++tasks.in;
    children.push_back(weft::spawn([who = d.below(1u << 30), depth] {
      dice mine(who);
      long r = family(mine, depth - 1);
      ++tasks.out;
      return r;
    }));
  }
  for (auto& c : children) n += c.join();
  return n;
}

// One goroutine blocks in a read that it does not announce; the other one writes.
void by_pipe(weft::wait_group& w, dice& d) {
  int fd[2];
  if (::pipe(fd) != 0) return fault("pipe", errno);
  auto sum = std::make_shared<std::atomic<long>>(0);
  int n = 1 + static_cast<int>(d.below(5));
  start(w, [in = fd[0], n, sum] {
    for (int i = 0; i < n; ++i) {
      unsigned char b = 0;
      if (!read_byte(in, &b)) fault("read");
      *sum += b;
      ++pipe_bytes.out;
    }
    ::close(in);
  });
  long sent = 0;
  for (int i = 0; i < n; ++i) {
    hold_up(d);
    auto b = static_cast<unsigned char>(d.below(256));
    sent += b;
    ++pipe_bytes.in;
    if (!write_byte(fd[1], b)) fault("write");
  }
  for (auto give_up = clock::now() + 60s; *sum != sent && clock::now() < give_up;) weft::sleep(100us);
  if (*sum != sent) fault("bytes of a pipe that did not arrive", sent - *sum);
  ::close(fd[1]);
}

void work(std::uint64_t who, shared& s, weft::wait_group& w) {
  dice d(who);
  while (!over) {
    ++steps;
    hold_up(d);
    switch (d.below(40)) {
      case 0: {
        std::uint64_t child = d.below(1u << 30);
        start(w, [child] {
          dice mine(child);
          for (int i = 0; i < 5; ++i) hold_up(mine);
        });
        break;
      }
      case 1: (void)family(d, 3); break;
      case 2: by_pipe(w, d); break;
      case 3: {
        weft::lock_os_thread();
        auto thread = ::gettid();
        hold_up(d);
        send_or_receive(s, d, values);
        if (::gettid() != thread) fault("a locked goroutine changed its thread");
        weft::unlock_os_thread();
        ++locked;
        break;
      }
      case 4:
      case 5: {
        ++s.to_count;
        std::lock_guard hold(s.m);
        long before = s.counted;
        if (d.below(10) == 0) hold_up(d);
        s.counted = before + 1;
        break;
      }
      default: send_or_receive(s, d, values);
    }
  }
}

// --- sockets

void serve(weft::net::tcp_stream s) {
  std::byte buffer[512];
  std::error_code ec;
  dice d(weft::this_goroutine::id());
  while (std::size_t n = s.read(std::span<std::byte>(buffer), ec)) {
    if (ec) return fault("a server's read", ec.value());
    if (d.below(20) == 0) hold_up(d);
    s.write(std::span<const std::byte>(buffer, n), ec);
    if (ec) return fault("a server's write", ec.value());
  }
  if (ec) fault("a server's last read", ec.value());
}

void converse(std::uint64_t who, const std::string& address) {
  dice d(who);
  while (!over) {
    std::error_code ec;
    auto s = weft::net::tcp_stream::connect(address, ec);
    if (ec) return fault("connect", ec.value());
    ++connections;
    for (unsigned n = 1 + d.below(300); n-- > 0 && !over;) {
      ++steps;
      std::array<unsigned char, 100> said, heard;
      std::size_t size = 1 + d.below(100);
      for (std::size_t i = 0; i < size; ++i) said[i] = static_cast<unsigned char>(d.below(256));
      s.write(std::as_bytes(std::span(said.data(), size)), ec);
      if (ec) return fault("a client's write", ec.value());
      bytes.in += static_cast<long>(size);
      if (d.below(4) == 0) hold_up(d);
      std::size_t got = s.read_exactly(std::as_writable_bytes(std::span(heard.data(), size)), ec);
      if (ec) return fault("a client's read", ec.value());
      bytes.out += static_cast<long>(got);
      if (std::memcmp(said.data(), heard.data(), size) != 0) return fault("an echo that is not what was said");
    }
  }
}

// --- all of it

int soak(std::chrono::seconds time) {
  shared s;
  for (std::size_t i = 0; i < 5; ++i) s.chans.emplace_back(i);
  weft::wait_group w, servers;
  auto listener = weft::net::tcp_listener::bind("127.0.0.1:0");
  std::string address = "127.0.0.1:" + std::to_string(listener.local_endpoint().port());
  start(servers, [&] {
    std::error_code closed;
    for (;;) {
      auto stream = listener.accept(closed);
      if (closed) return;
      start(servers, [stream = std::move(stream)]() mutable { serve(std::move(stream)); });
    }
  });
  for (std::uint64_t g = 1; g <= 16; ++g) start(w, [&, g] { work(g, s, w); });
  for (std::uint64_t g = 100; g < 106; ++g) start(w, [&, g] { converse(g, address); });
  std::vector<std::thread> threads;
  for (std::uint64_t t = 200; t < 202; ++t) {
    threads.emplace_back([&, t] {
      dice d(t);
      while (!over) {
        send_or_receive(s, d, foreign_values);
        block_thread(d.us(1000));
      }
    });
  }

  dice d(0);
  for (auto end = clock::now() + time; clock::now() < end && wrong == 0;) {
    weft::set_procs(1 + d.below(4));
    ++procs_changed;
    weft::sleep(d.us(10000));
  }
  over = true;
  w.wait();
  listener.close();
  servers.wait();
  weft::blocking([&] {
    for (auto& t : threads) t.join();
  });
  for (auto& c : s.chans) {
    long v;
    while (c.try_recv(v) == recv_result::value) values.out += v;
  }
  values.in += foreign_values.in;
  if (s.counted != s.to_count) fault("counts under a lock that got lost", s.to_count - s.counted);
  if (values.in != values.out) fault("values that did not arrive", values.in - values.out);
  if (goroutines.in != goroutines.out) fault("goroutines that did not end", goroutines.in - goroutines.out);
  if (tasks.in != tasks.out) fault("tasks that did not end", tasks.in - tasks.out);
  if (bytes.in != bytes.out) fault("bytes without an echo", bytes.in - bytes.out);
  for (auto give_up = clock::now() + 5s; weft::num_goroutines() != 1 && clock::now() < give_up;) weft::sleep(1ms);
  if (weft::num_goroutines() != 1) fault("goroutines left", static_cast<long long>(weft::num_goroutines()));
  return wrong == 0 ? 0 : 1;
}

// If nothing goes on, shows every goroutine.
void watch() {
  long last = -1;
  int still = 0;
  while (!rain_over) {
    std::this_thread::sleep_for(100ms);
    still = steps == last ? still + 1 : 0;
    last = steps;
    if (still == 600) ::kill(::getpid(), SIGQUIT);
  }
}

void print(const char* name, const account& a) {
  std::printf("  %-22s %12ld = %ld\n", name, a.in.load(), a.out.load());
}

}  // namespace

int main(int argc, char** argv) {
  const auto chosen = weft::test::read_soak_arguments("sched_soak", argc, argv);
  const std::chrono::seconds time = chosen.time;
  seed = chosen.seed;
  let_it_rain();
  std::thread raining(rain), watching(watch);
  int code = weft::run([time] { return soak(time); });
  rain_over = true;
  raining.join();
  watching.join();
  print("goroutines", goroutines);
  print("tasks", tasks);
  print("sum of values", values);
  print("bytes echoed", bytes);
  print("bytes through pipes", pipe_bytes);
  std::printf("  %ld computed for long, %ld blocked, %ld of them announced, %ld sleeps, %ld locked threads\n",
              hogs.load(), blocked + announced, announced.load(), sleeps.load(), locked.load());
  std::printf("  %ld connections, %ld changes of the number of Ps, %ld signals, %ld calls of ours interrupted\n",
              connections.load(), procs_changed.load(), signals.load(), interrupted.load());
  std::printf("%s\n", code == 0 ? "all accounted for" : "NOT RIGHT, see above");
  return code;
}
