// Every goroutine that is ready gets its turn: also beside goroutines that are always ready, that make one call after
// the other, or that keep their threads, and with as few threads as weft may be given.
//
// Kills these mutants (tests/mutants): starve-*.
//
// Linked with --wrap, so that the system can refuse threads.
#include "runtime/thread.hpp"
#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <netinet/in.h>
#include <pthread.h>
#include <span>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {
std::atomic<bool> no_threads{false};
}  // namespace

extern "C" {
int __real_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int __wrap_pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* arg) {
  if (!no_threads.load()) return __real_pthread_create(t, a, f, arg);
  errno = EAGAIN;  // as the system calls in it would set it
  return EAGAIN;
}
}

using namespace weft::test;

namespace {

// Starts goroutines that only yield: whenever their M could run something else, one of these is ready.
void always_ready(weft::wait_group& w, const std::atomic<bool>& over, int goroutines = 2) {
  for (int i = 0; i < goroutines; ++i) {
    w.go([&over] {
      while (!over) weft::yield();
    });
  }
}

// Starts two goroutines that talk to each other until `over`. For each word, both compute for as long as `thinks`.
void two_that_talk(weft::wait_group& w, const std::atomic<bool>& over, clock::duration thinks, int& words) {
  weft::chan<void> word;
  w.go([&words, word, thinks] {
    for (; word.recv(); ++words) compute_for(thinks);
  });
  w.go([&over, word, thinks] {
    for (auto end = clock::now() + late; !over && clock::now() < end;) {
      word.send();
      compute_for(thinks);
    }
    word.close();
  });
}

// Waits for `flag` without giving the thread to another goroutine. Returns true if it is set in time.
bool comes(const std::atomic<bool>& flag) {
  for (auto end = clock::now() + late; !flag && clock::now() < end;) ::usleep(100);
  return flag;
}

}  // namespace

TEST_CASE("starvation: one that makes a call after the other") {
  for (unsigned threads : {1U, 100U}) {
    for (auto us : {50, 2000}) {
      INFO(threads << " threads, calls of " << us << " us");
      clock::duration longest{};
      weft::run(
          [&] {
            std::atomic<bool> over{false};
            weft::wait_group w;
            w.go([&] {
              for (auto end = clock::now() + late; !over && clock::now() < end;) {
                weft::blocking([us] { ::usleep(static_cast<useconds_t>(us)); });
              }
            });
            for (auto end = clock::now() + 200ms; clock::now() < end;) {
              auto before = clock::now();
              weft::yield();
              longest = std::max(longest, clock::now() - before);
            }
            over = true;
            w.wait();
          },
          {.procs = 1, .max_threads = threads});
      CHECK(longest < late / 2);
    }
  }
}

TEST_CASE("starvation: a timer in the heap of a P that no thread can be had for") {
  weft::run(
      [] {
        std::atomic<bool> fired{false}, over{false};
        std::atomic<long> rounds{0};
        weft::wait_group w;
        for (int i = 0; i < 2; ++i) {  // one P always has something to run
          w.go([&] {
            while (!over) {
              ++rounds;
              weft::yield();
            }
          });
        }
        bool came = false;
        w.go([&] {
          long before = rounds;
          while (rounds < before + 1000) {}  // so the two above run on another P
          weft::after_func(5ms, [&] { fired = true; });
          weft::blocking([&] { came = comes(fired); });
          over = true;
        });
        w.wait();
        CHECK(came);
      },
      {.procs = 2, .max_threads = 2});
}

TEST_CASE("starvation: the only thread that is free sleeps in the poller") {
  for (bool at_the_limit : {true, false}) {
    weft::run(
        [&] {
          weft::chan<void> over;
          weft::wait_group w;
          w.go([&] { over.recv_for(std::chrono::hours(1)); });
          compute_for(a_while * 4);  // the other M goes to the poller
          no_threads = !at_the_limit;
          std::atomic<bool> began{false};
          w.go([&] { began = true; });
          bool came = false;
          weft::blocking([&] { came = comes(began); });
          no_threads = false;
          CHECK(came);
          over.close();
          w.wait();
        },
        {.procs = 2, .max_threads = at_the_limit ? 2U : 100U});
  }
}

TEST_CASE("starvation: a thread of the program wakes somebody, and the only thread sleeps in the poller") {
  weft::run(
      [] {
        weft::chan<int> c(1);
        clock::time_point sent;
        std::thread t([&] {
          ::usleep(20'000);
          sent = clock::now();
          c.send(1);
        });
        int v = 0;
        CHECK(c.recv_for(v, late) == weft::recv_result::value);
        t.join();
        CHECK(clock::now() - sent < late / 2);
      },
      {.procs = 1, .max_threads = 1});
}

namespace {

// A connection that always has more to read: a thread writes to it until it is closed.
class busy_connection {
 public:
  busy_connection() {
    auto l = weft::net::tcp_listener::bind("127.0.0.1:0");
    const auto at = l.local_endpoint();
    writer_ = std::thread([at] {
      static constexpr char bytes[1 << 14]{};
      const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
      if (::connect(fd, static_cast<const sockaddr*>(at.data()), static_cast<socklen_t>(at.size())) == 0) {
        while (::send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) > 0) {}
      }
      ::close(fd);
    });
    stream_ = l.accept();
  }
  ~busy_connection() {
    stream_.close();
    writer_.join();
  }

  void read() {
    char some[200];
    stream_.read(some);
  }

 private:
  weft::net::tcp_stream stream_;
  std::thread writer_;
};

}  // namespace

// Whenever the reader waits, the poller mostly finds at once that there is more. The other goroutine is next, with
// nobody behind it.
TEST_CASE("starvation: one that the reader of a busy connection wakes") {
  weft::run(
      [] {
        busy_connection c;
        weft::chan<std::uint64_t> woken(1);  // when, counted in dispatches
        std::uint64_t longest = 0;
        auto other = weft::spawn([&] {
          while (auto at = woken.recv()) longest = std::max(longest, weft::runtime_stats().dispatches - *at);
        });
        for (auto end = clock::now() + 500ms; clock::now() < end;) {
          for (int i = 0; i < 100; ++i) c.read();
          if (woken.size() == 0) woken.try_send(weft::runtime_stats().dispatches);
        }
        woken.close();
        other.join();
        CHECK(longest <= 10);
      },
      {.procs = 1});
}

// The reader begins a time slice whenever the poller wakes it, so the pair's slice is never used up. If the pair talks
// fast, the others have a turn after so many words; if not, after so long. Then all of them have one.
TEST_CASE("starvation: beside two that talk to each other, and a connection to which something comes now and then") {
  struct {
    clock::duration thinks;
    useconds_t pause;  // between what comes
    int others;
    int least;  // turns of one more in half a second
  } const cases[] = {{200ns, 50, 0, 150}, {100us, 1000, 0, 15}, {100us, 1000, 20, 15}};
  for (const auto& [thinks, pause, others, least] : cases) {
    INFO("words of " << thinks.count() << " ns, " << others << " others");
    int turns = 0;
    weft::run(
        [&, thinks = thinks, pause = pause, others = others] {
          auto [near, far] = weft::net::unix_stream::pair();
          std::atomic<bool> over{false};
          weft::wait_group w;
          w.go([&s = near] {
            char some[1];
            std::error_code ec;
            while (s.read(some, ec) != 0) {}
          });
          std::thread writer([fd = far.native_handle(), pause, &over] {
            for (; !over; ::usleep(pause)) static_cast<void>(::send(fd, "x", 1, MSG_NOSIGNAL));
          });
          int words = 0;
          two_that_talk(w, over, thinks, words);
          always_ready(w, over, others);
          CHECK(eventually([&] { return words > 100; }));
          for (auto end = clock::now() + 500ms; clock::now() < end; ++turns) weft::yield();
          over = true;
          far.shutdown_write();
          w.wait();
          writer.join();
        },
        {.procs = 1});
    CHECK(turns >= least / slowdown);
  }
}

// The others use up their time slices, though they never wait. The two that talk have a sixth of the time. If they had
// so many words for each time slice of one of the others, they would have some 15,000 in half a second.
TEST_CASE("starvation: two that talk to each other, beside others that compute and now and then use a channel") {
  int words = 0;
  weft::run(
      [&] {
        std::atomic<bool> over{false};
        weft::wait_group w;
        for (int i = 0; i < 5; ++i) {
          w.go([&over] {
            for (weft::chan<int> own(1); !over;) {
              own.send(1);
              own.recv();
              compute_for(100us);
            }
          });
        }
        two_that_talk(w, over, 0us, words);
        weft::sleep(500ms);
        over = true;
        w.wait();
      },
      {.procs = 1});
  INFO(words << " words");
  CHECK(words >= 80'000 / slowdown);
}

// The two that talk pay for the time that others used, but not for that in which nobody ran, and once for each of those
// others: also for those that were started meanwhile.
TEST_CASE("starvation: one that yields beside two that talk to each other") {
  struct {
    clock::duration pause;  // between two conversations
    int started;            // by the one that yields, each time
  } const cases[] = {{20ms, 0}, {0ms, 200}};
  constexpr int conversations = 20;
  for (const auto& [pause, started] : cases) {
    INFO(started << " are started");
    // Returns in how many conversations it waited for more than 5 ms (TSan's operations take longer).
    auto waits_long = [pause = pause, started = started] {
      int n = 0;
      for (int i = 0; i < conversations; ++i) {
        std::atomic<bool> over{false};
        weft::wait_group w;
        int words = 0;
        two_that_talk(w, over, 0us, words);
        clock::duration longest{};
        const int enough = 20'000 + i * 777;  // the last look before the end is at some place
        for (auto end = clock::now() + late; words < enough && clock::now() < end;) {
          const auto begin = clock::now();
          weft::yield();
          longest = std::max(longest, clock::now() - begin);
          weft::wait_group those;
          for (int k = 0; k < started; ++k) those.go([] { compute_for(100us); });
          those.wait();
        }
        over = true;
        w.wait();
        n += longest > 5ms * slowdown;
        weft::sleep(pause);
      }
      return n;
    };
    int least = conversations;
    for (int attempt = 0; attempt < 3 && least > conversations / 10; ++attempt) {  // other processes disturb
      least = std::min(least, weft::run(waits_long, {.procs = 1}));
    }
    CHECK(least <= conversations / 10);
  }
}

// Each comes by every 20 us, so it is asked to yield, and keeps its thread.
TEST_CASE("starvation: those that compute and often use a channel have equal shares, and seldom lose their Ps") {
  double least_share = 0, lost = 1;
  for (int attempt = 0; attempt < 5 && (least_share < 0.5 || lost > 0.2); ++attempt) {  // other processes disturb
    std::array<long, 8> done{};
    weft::run(
        [&] {
          const weft::stats before = weft::runtime_stats();
          std::atomic<bool> over{false};
          weft::wait_group w;
          for (long& n : done) {
            w.go([&] {
              for (weft::chan<int> own(1); !over; ++n) {
                own.send(1);
                own.recv();
                compute_for(20us);
              }
            });
          }
          weft::sleep(400ms);
          over = true;
          w.wait();
          const weft::stats after = weft::runtime_stats();
          lost = static_cast<double>(after.detachments - before.detachments) /
                 static_cast<double>(after.preemptions - before.preemptions);
        },
        {.procs = 1});
    const auto [least, most] = std::minmax_element(done.begin(), done.end());
    least_share = static_cast<double>(*least) / static_cast<double>(*most);
  }
  INFO("least share " << least_share << ", lost " << lost);
  CHECK(least_share >= 0.5);
  CHECK(lost <= 0.2);
}

// Of two that the poller wakes at once, the first runs at once, and need not wait for the pair's time slice.
TEST_CASE("starvation: two connections to which something comes, beside two that talk to each other") {
  weft::run(
      [] {
        std::atomic<bool> over{false};
        weft::wait_group w;
        int words = 0;
        two_that_talk(w, over, 5us, words);
        std::array<std::pair<weft::net::unix_stream, weft::net::unix_stream>, 2> s{weft::net::unix_stream::pair(),
                                                                                   weft::net::unix_stream::pair()};
        constexpr int times = 20;
        std::thread writer([&] {
          for (int i = 0; i < times; ++i, ::usleep(5000)) {
            const auto now = weft::runtime_stats().dispatches;
            for (auto& [near, far] : s) static_cast<void>(::send(far.native_handle(), &now, sizeof now, MSG_NOSIGNAL));
          }
          for (auto& [near, far] : s) ::shutdown(far.native_handle(), SHUT_WR);
        });
        std::array<std::vector<std::uint64_t>, 2> of;  // waits, in dispatches
        weft::wait_group readers;
        for (int i = 0; i < 2; ++i) {
          readers.go([&, i] {
            std::uint64_t sent;
            while (s[i].first.read(std::as_writable_bytes(std::span(&sent, 1))) == sizeof sent) {
              of[i].push_back(weft::runtime_stats().dispatches - sent);
            }
          });
        }
        readers.wait();
        over = true;
        w.wait();
        writer.join();
        REQUIRE(of[0].size() == times);
        REQUIRE(of[1].size() == times);
        std::vector<std::uint64_t> waits;  // of the first of the two
        for (int i = 0; i < times; ++i) waits.push_back(std::min(of[0][i], of[1][i]));
        std::ranges::nth_element(waits, waits.begin() + times / 2);
        CHECK(waits[times / 2] < 100);
      },
      {.procs = 1});
}

TEST_CASE("starvation: the queue of all, beside one whose timer is always due") {
  weft::run(
      [] {
        std::atomic<bool> over{false};
        auto busy = weft::spawn([&] {
          for (auto end = clock::now() + late; !over && clock::now() < end;) weft::sleep(1ns);
        });
        weft::chan<std::uint64_t> c(1);  // when, counted in dispatches
        std::thread writer([&] {
          for (int i = 0; i < 50; ++i, ::usleep(2000)) c.send(weft::runtime_stats().dispatches);
          c.close();
        });
        std::vector<std::uint64_t> waits;
        for (auto at : c) waits.push_back(weft::runtime_stats().dispatches - at);
        over = true;
        busy.join();
        writer.join();
        std::ranges::nth_element(waits, waits.begin() + 25);
        CHECK(waits[25] < 1000);
      },
      {.procs = 1});
}

TEST_CASE("starvation: beside one that is tied to its thread, the other one sleeps in the poller") {
  weft::run(
      [] {
        weft::chan<void> over;
        weft::wait_group w;
        w.go([&] { over.recv_for(std::chrono::hours(1)); });
        weft::lock_os_thread();
        compute_for(a_while * 4);
        weft::chan<void> began(1);
        auto before = clock::now();
        w.go([&] { began.send(); });
        CHECK(began.recv_for(late) == weft::recv_result::value);
        CHECK(clock::now() - before < late / 2);
        weft::unlock_os_thread();
        over.close();
        w.wait();
      },
      {.procs = 2, .max_threads = 1});
}

TEST_CASE("starvation: a new goroutine, where each thread that there may be runs another") {
  weft::run(
      [] {
        std::atomic<bool> over{false}, began{false};
        weft::wait_group w;
        always_ready(w, over, 40);
        weft::task<void> computes = weft::spawn([] { compute_for(60ms); });
        computes.join();
        w.go([&] { began = true; });
        for (auto end = clock::now() + late; !began && clock::now() < end;) weft::yield();
        CHECK(began);
        over = true;
        w.wait();
      },
      {.procs = 8, .max_threads = 8});
}

TEST_CASE("starvation: a new goroutine, where as many as may be are tied to their threads") {
  weft::run(
      [] {
        weft::chan<void> over;
        std::atomic<int> tied{0};
        weft::wait_group w;
        for (int i = 0; i < 8; ++i) {
          w.go([&] {
            weft::lock_os_thread();
            ++tied;
            over.recv();
          });
        }
        CHECK(eventually([&] { return tied == 8; }));
        weft::task<void> computes = weft::spawn([] { compute_for(60ms); });
        std::atomic<bool> rest{false}, began{false};
        always_ready(w, rest, 1);
        computes.join();
        rest = true;
        w.go([&] { began = true; });
        CHECK(eventually([&] { return began.load(); }));
        over.close();
        w.wait();
      },
      {.procs = 2, .max_threads = 8});
}

TEST_CASE("starvation: goroutines that had to wait for those that compute, which have ended") {
  weft::run(
      [] {
        constexpr int many = 14;
        std::atomic<bool> over{false}, in_time{false};
        std::atomic<int> begun{0};
        weft::wait_group w;
        always_ready(w, over);
        for (int i = 0; i < many; ++i) {
          w.go([&] {
            ++begun;
            compute_for(300ms);
          });
        }
        std::thread t([&] {  // a plain thread: a goroutine's timer would be looked after
          for (auto end = clock::now() + 2 * late; begun < many && clock::now() < end;) ::usleep(1000);
          in_time = begun == many;
          over = true;
        });
        w.wait();
        t.join();
        CHECK(in_time);
      },
      {.procs = 1});
}

TEST_CASE(
    "starvation: new goroutines beside those that compute, and so many others that the global queue is never empty") {
  weft::run(
      [] {
        constexpr int many = 400;
        std::atomic<bool> over{false};
        std::atomic<int> compute{0}, begun{0};
        weft::wait_group w;
        for (int i = 0; i < 8; ++i) {
          w.go([&] {
            ++compute;
            while (!over) {}
          });
        }
        while (compute < 8) weft::yield();
        for (int i = 0; i < many; ++i) {
          w.go([&] {
            ++begun;
            while (!over) weft::yield();
          });
        }
        for (auto end = clock::now() + 2 * late; begun < many && clock::now() < end;) weft::yield();
        CHECK(begun == many);
        over = true;
        w.wait();
      },
      {.procs = 1});
}

TEST_CASE("starvation: goroutines that wait for those that compute, and no thread can be had when they may begin") {
  std::atomic<bool> over{false}, in_time{false};
  std::atomic<int> begun{0};
  std::thread t([&] {
    auto wait = [](const std::function<bool()>& condition) {
      for (auto end = clock::now() + late; !condition() && clock::now() < end;) ::usleep(1000);
      return condition();
    };
    wait([&] { return begun >= 7; });
    no_threads = true;
    wait([&] { return weft::runtime_stats().hogs < 6; });
    ::usleep(100'000);
    int before = begun;
    no_threads = false;
    in_time = wait([&] { return begun > before; });
    over = true;
  });
  weft::run(
      [&] {
        auto keep_the_thread = [&] {
          compute_for(200ms);
          while (!over) ::usleep(1000);
        };
        weft::wait_group w;
        for (int i = 0; i < 12; ++i) {
          w.go([&] {
            ++begun;
            keep_the_thread();
          });
        }
        keep_the_thread();
        w.wait();
      },
      {.procs = 1});
  t.join();
  CHECK(in_time);
}

TEST_CASE("starvation: one that is tied to its thread comes back from a call, and the other thread computes") {
  weft::run(
      [] {
        std::atomic<bool> over{false}, computes{false};
        weft::wait_group w;
        auto listener = weft::net::tcp_listener::bind("127.0.0.1:0");
        w.go([&] {
          try {
            listener.accept();
          } catch (const std::system_error&) {}  // closed
        });
        weft::lock_os_thread();
        w.go([&] {
          computes = true;
          for (auto end = clock::now() + late; !over && clock::now() < end;) {}
        });
        auto before = clock::now();
        while (!computes) weft::yield();
        for (int i = 0; i < 30; ++i) weft::blocking([] { ::usleep(1000); });
        CHECK(clock::now() - before < late / 2);
        over = true;
        weft::unlock_os_thread();
        listener.close();
        w.wait();
      },
      {.procs = 1, .max_threads = 2});
}

TEST_CASE("starvation: one is pinned to the thread that another wants to be tied to, and no other is to be had") {
  weft::run(
      [] {
        weft::chan<void> from_pinned, pinned(1);
        std::atomic<bool> blocks{false};
        weft::wait_group w;
        w.go([&] {
          weft::blocking([&] {
            blocks = true;
            while (blocks) ::usleep(100);
          });
        });
        while (!blocks) weft::yield();
        w.go([&] {
          weft::pin here;
          pinned.send();
          weft::sleep(a_while);
          from_pinned.send();
        });
        pinned.recv();
        w.go([&] {
          try {
            weft::lock_os_thread();
          } catch (const std::system_error&) {}  // the pinned goroutine would be left without a thread
          CHECK(from_pinned.recv_for(late) == weft::recv_result::value);
          blocks = false;
        });
        w.wait();
      },
      {.procs = 1, .max_threads = 2});
}

TEST_CASE("starvation: a thread that is refused changes no goroutine's errno") {
  std::atomic<int> wrong{0};
  weft::run(
      [&] {
        no_threads = true;
        weft::wait_group w;
        for (int i = 0; i < 4; ++i) {
          w.go([&wrong, i] {
            for (auto end = clock::now() + 50ms; clock::now() < end;) {
              weft::rt::set_errno(100 + i);
              weft::yield();
              if (weft::rt::get_errno() != 100 + i) ++wrong;
            }
          });
        }
        w.wait();
        no_threads = false;
      },
      {.procs = 2});
  CHECK(wrong == 0);
}
