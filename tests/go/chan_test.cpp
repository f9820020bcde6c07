// What Go's channels promise (runtime/chan_test.go, test/chan), one test case each, and what only weft's channels do.

#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <numeric>
#include <ranges>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
#include <weft/weft.hpp>

using namespace weft::test;
using weft::chan;
using weft::recv_result;

namespace {

// Counts its objects, and those that hold a value (were not moved from).
struct counted {
  static inline std::atomic<int> objects{0};
  static inline std::atomic<int> values{0};
  int value = 0;
  bool holds = false;

  counted() noexcept { ++objects; }
  explicit counted(int v) noexcept : value(v), holds(true) {
    ++objects;
    ++values;
  }
  counted(counted&& o) noexcept : value(o.value), holds(std::exchange(o.holds, false)) { ++objects; }
  counted& operator=(counted&& o) noexcept {
    if (holds) --values;
    value = o.value;
    holds = std::exchange(o.holds, false);
    return *this;
  }
  ~counted() {
    --objects;
    if (holds) --values;
  }
};

}  // namespace

TEST_CASE("unbuffered: a send returns only when its value was received") {
  weft::run([] {
    chan<int> c;
    std::atomic<bool> sent{false};
    weft::go([=, &sent] {
      c.send(1);
      sent = true;
    });
    weft::sleep(a_while);
    CHECK_FALSE(sent);
    CHECK(c.size() == 0);
    CHECK(c.recv() == 1);
    CHECK(eventually([&] { return sent.load(); }));
  });
}

TEST_CASE("unbuffered: a receive waits for a send") {
  weft::run([] {
    chan<int> c, done;
    weft::go([=] { done.send(*c.recv()); });
    weft::sleep(a_while);
    int v = 0;
    CHECK(done.try_recv(v) == recv_result::empty);
    c.send(42);
    CHECK(done.recv() == 42);
  });
}

TEST_CASE("unbuffered: what happened before a send is seen after its receive, and the other way round") {
  weft::run([] {
    chan<void> there, back;
    std::vector<int> shared;
    weft::go([&, there, back] {
      for (int i = 0; i < 1000; ++i) {
        shared.push_back(i);
        there.send();
        back.recv();
      }
      there.close();
    });
    std::size_t n = 0;
    while (there.recv()) {
      CHECK(shared.size() == ++n);
      shared.push_back(-1);
      shared.pop_back();
      back.send();
    }
    CHECK(n == 1000);
  });
}

TEST_CASE("buffered: first in, first out") {
  weft::run([] {
    for (std::size_t capacity : {1, 2, 3, 7, 64}) {
      chan<int> c{capacity};
      weft::go([=] {
        for (int i = 0; i < 500; ++i) c.send(i);
        c.close();
      });
      int next = 0;
      for (int v : c) {
        if (v != next) FAIL("got " << v << " for " << next);
        ++next;
      }
      CHECK(next == 500);
    }
  });
}

TEST_CASE("buffered: a send waits only when the buffer is full, a receive only when it is empty") {
  weft::run([] {
    chan<int> c{3};
    for (int i = 0; i < 3; ++i) c.send(i);
    CHECK(c.size() == 3);
    std::atomic<bool> sent{false};
    weft::go([=, &sent] {
      c.send(3);
      sent = true;
    });
    weft::sleep(a_while);
    CHECK_FALSE(sent);
    CHECK(c.recv() == 0);
    CHECK(eventually([&] { return sent.load(); }));
    CHECK(c.size() == 3);
    for (int i = 1; i < 4; ++i) CHECK(c.recv() == i);
    int v = -1;
    CHECK(c.try_recv(v) == recv_result::empty);
    CHECK(v == -1);
  });
}

TEST_CASE("buffered: a waiting sender's value comes after what is in the buffer") {
  weft::run([] {
    chan<int> c{2};
    c.send(1);
    c.send(2);
    for (int i = 3; i < 6; ++i) {
      weft::go([=] { c.send(i); });
      weft::sleep(a_while);  // so that they queue in this order
    }
    for (int i = 1; i < 6; ++i) CHECK(c.recv() == i);
  });
}

TEST_CASE("nil: sends and receives wait for ever, other forms say so at once or when their time is over") {
  weft::run([] {
    chan<int> c{weft::nil};
    CHECK(c.is_nil());
    CHECK(c == weft::nil);
    CHECK(chan<int>() != weft::nil);
    CHECK(c.size() == 0);
    CHECK(c.capacity() == 0);
    std::atomic<int> came_back{0};
    weft::go([=, &came_back] {
      c.send(1);
      ++came_back;
    });
    weft::go([=, &came_back] {
      c.recv();
      ++came_back;
    });
    int v = 7;
    CHECK_FALSE(c.try_send(1));
    CHECK(c.try_recv(v) == recv_result::empty);
    auto begin = clock::now();
    CHECK_FALSE(c.send_for(1, 1ms));
    CHECK(c.recv_for(v, 1ms) == recv_result::empty);
    CHECK(clock::now() - begin >= 2ms);
    CHECK(v == 7);
    CHECK_THROWS_AS(c.close(), std::logic_error);
    CHECK(weft::select(weft::on_recv(c), weft::on_send(c, 1), weft::on_default()) == 2);
    CHECK(came_back == 0);
  });
}

TEST_CASE("nil: views and moved-from handles are nil") {
  weft::chan<int> nil = weft::nil;
  CHECK(nil.is_nil());
  CHECK(weft::send_chan<int>().is_nil());
  CHECK(weft::recv_chan<int>().is_nil());
  chan<int> c{1};
  CHECK_FALSE(c.is_nil());
  chan<int> d = std::move(c);
  CHECK(c.is_nil());  // NOLINT: that is what is tested
  CHECK_FALSE(d.is_nil());
  CHECK_THROWS_AS(c.close(), std::logic_error);
}

TEST_CASE("closed: a receive takes what is buffered, then says closed, each time") {
  weft::run([] {
    chan<int> c{4};
    for (int i = 0; i < 3; ++i) c.send(i);
    c.close();
    CHECK(c.size() == 3);
    CHECK(c.recv() == 0);
    int v = -1;
    CHECK(c.try_recv(v) == recv_result::value);
    CHECK(v == 1);
    CHECK(c.recv_for(v, 1h) == recv_result::value);
    CHECK(v == 2);
    for (int i = 0; i < 2; ++i) {
      CHECK(c.recv() == std::nullopt);
      CHECK_FALSE(c.recv(v));
      CHECK(c.try_recv(v) == recv_result::closed);
      CHECK(c.recv_for(v, 1h) == recv_result::closed);
    }
    CHECK(v == 2);  // untouched
  });
}

TEST_CASE("closed: each form of send throws") {
  weft::run([] {
    for (std::size_t capacity : {0, 1}) {
      chan<int> c{capacity};
      c.close();
      CHECK_THROWS_AS(c.send(1), weft::channel_closed);
      CHECK_THROWS_AS(c.try_send(1), weft::channel_closed);
      CHECK_THROWS_AS(c.send_for(1, 1h), weft::channel_closed);
      CHECK_THROWS_AS(weft::send_chan<int>(c).send(1), weft::channel_closed);
      CHECK_THROWS_AS(c.send(1), std::runtime_error);
    }
    chan<void> s;
    s.close();
    CHECK_THROWS_AS(s.send(), weft::channel_closed);
    CHECK_THROWS_AS(s.try_send(), weft::channel_closed);
    CHECK_THROWS_AS(s.send_for(1h), weft::channel_closed);
  });
}

TEST_CASE("closed: a second close throws") {
  weft::run([] {
    chan<int> c;
    c.close();
    CHECK_THROWS_AS(c.close(), weft::channel_closed);
    CHECK_THROWS_AS(weft::send_chan<int>(c).close(), weft::channel_closed);
  });
}

TEST_CASE("close wakes every waiting receiver") {
  weft::run([] {
    constexpr int n = 150;  // more than close wakes at a time
    chan<int> c, results{n};
    for (int i = 0; i < n; ++i) {
      weft::go([=] {
        switch (i % 4) {
          case 0: results.send(c.recv() ? 1 : 0); break;
          case 1: {
            int v;
            results.send(c.recv_for(v, 1h) == recv_result::closed ? 0 : 1);
            break;
          }
          case 2: weft::select(weft::on_recv(c, [&](std::optional<int> v) { results.send(v ? 1 : 0); })); break;
          default:
            for (int v : c) results.send(v);
            results.send(0);
        }
      });
    }
    weft::sleep(a_while);
    CHECK(results.size() == 0);
    c.close();
    for (int i = 0; i < n; ++i) CHECK(results.recv() == 0);
  });
}

TEST_CASE("close wakes every waiting sender, which throws, and its value is not received") {
  weft::run([] {
    chan<int> c{1}, threw{64};
    c.send(7);
    for (int i = 0; i < 30; ++i) {
      weft::go([=] {
        int what = 0;
        try {
          switch (i % 3) {
            case 0: c.send(100 + i); break;
            case 1: c.send_for(100 + i, 1h); break;
            default: weft::select(weft::on_send(c, 100 + i));
          }
        } catch (const weft::channel_closed&) {
          what = 1;
        }
        threw.send(what);
      });
    }
    weft::sleep(a_while);
    c.close();
    for (int i = 0; i < 30; ++i) CHECK(threw.recv() == 1);
    CHECK(c.recv() == 7);
    CHECK(c.recv() == std::nullopt);
  });
}

TEST_CASE("close: what was sent before is received by many receivers, each value once") {
  weft::run([] {
    for (std::size_t capacity : {0, 1, 10}) {
      chan<int> c{capacity}, sums;
      constexpr int receivers = 8, n = 400;
      for (int r = 0; r < receivers; ++r) {
        weft::go([=] {
          int sum = 0;
          for (int v : c) sum += v;
          sums.send(sum);
        });
      }
      for (int i = 1; i <= n; ++i) c.send(i);
      c.close();
      int total = 0;
      for (int r = 0; r < receivers; ++r) total += *sums.recv();
      CHECK(total == n * (n + 1) / 2);
    }
  });
}

// Go's TestNonblockRecvRace: a receive that does not wait must not report "empty" on a channel that was closed before.
TEST_CASE("closed: a receive that does not wait sees a close that happened before") {
  weft::run([] {
    for (int i = 0; i < fewer(1000); ++i) {
      chan<int> c{1};
      c.send(1);
      auto t = weft::spawn([=] {
        int v;
        return c.try_recv(v) != recv_result::empty;
      });
      c.close();
      int v;
      recv_result r = c.try_recv(v);
      if (r == recv_result::empty) FAIL("empty, but closed");
      if (!t.join()) FAIL("neither a value nor closed");
    }
  });
}

TEST_CASE("waiting receivers are served first come, first served") {
  weft::run(
      [] {
        constexpr int n = 30;
        chan<int> c;
        std::array<std::atomic<int>, n> got{};
        weft::wait_group all;
        int begun = 0;
        for (int i = 0; i < n; ++i) {
          all.go([=, &got, &begun] {
            ++begun;
            got[static_cast<std::size_t>(i)] = *c.recv();
          });
          while (begun <= i) weft::yield();
          for (int k = 0; k < 3; ++k) weft::yield();
        }
        for (int i = 0; i < n; ++i) c.send(i);
        all.wait();
        for (int i = 0; i < n; ++i) CHECK(got[static_cast<std::size_t>(i)] == i);
      },
      {.procs = 1});
}

TEST_CASE("waiting senders are served first come, first served") {
  weft::run(
      [] {
        for (std::size_t capacity : {0, 2}) {
          chan<int> c{capacity};
          for (int i = 0; i < 30; ++i) {
            weft::go([=] { c.send(i); });
            weft::yield();
          }
          for (int i = 0; i < 30; ++i) CHECK(c.recv() == i);
        }
      },
      {.procs = 1});
}

// test/chan/fifo.go
TEST_CASE("a chain of goroutines passes its turn on in order") {
  weft::run([] {
    chan<int> in;
    chan<int> first = in;
    std::atomic<int> wrong{0};
    for (int i = 0; i < 10; ++i) {
      chan<int> out;
      weft::go([=, &wrong] {
        if (*in.recv() != i) ++wrong;
        out.send(i + 1);
      });
      in = out;
    }
    first.send(0);
    CHECK(in.recv() == 10);
    CHECK(wrong == 0);
  });
}

// test/chan/goroutines.go
TEST_CASE("a value walks through a chain of 10,000 goroutines") {
  weft::run([] {
    const int n = under_tsan ? 1000 : 10000;
    chan<int> leftmost, right = leftmost, left = leftmost;
    for (int i = 0; i < n; ++i) {
      right = chan<int>();
      weft::go([=] { left.send(*right.recv() + 1); });
      left = right;
    }
    weft::go([=] { right.send(0); });
    CHECK(leftmost.recv() == n);
  });
}

// test/chan/sieve1.go
TEST_CASE("the prime sieve") {
  weft::run([] {
    chan<int> numbers;
    weft::go([=] {
      for (int i = 2;; ++i) numbers.send(i);
    });
    chan<int> in = numbers;
    std::vector<int> primes;
    for (int i = 0; i < 25; ++i) {
      int prime = *in.recv();
      primes.push_back(prime);
      chan<int> out;
      weft::go([=] {
        for (;;) {
          int v = *in.recv();
          if (v % prime != 0) out.send(v);
        }
      });
      in = out;
    }
    CHECK(primes.back() == 97);
    CHECK(std::accumulate(primes.begin(), primes.end(), 0) == 1060);
  });
}

// runtime's TestMultiConsumer
TEST_CASE("many consumers: nothing is lost or doubled on the way through two channels") {
  weft::run([] {
    constexpr int workers = 23;
    const int n = fewer(20000);
    const std::vector<int> primes{2, 3, 7, 11, 13, 17, 19, 23, 27, 31};
    chan<int> q{workers * 3}, r{workers * 3};
    weft::wait_group all;
    for (int w = 0; w < workers; ++w) {
      all.go([=] {
        for (int v : q) {
          if (v % 7 == w % 7) weft::yield();
          r.send(v);
        }
      });
    }
    std::atomic<long> sent{0};
    weft::go([=, &sent, &primes, &all] {
      for (int i = 0; i < n; ++i) {
        int v = primes[static_cast<std::size_t>(i) % primes.size()];
        sent += v;
        q.send(v);
      }
      q.close();
      all.wait();
      r.close();
    });
    int count = 0;
    long got = 0;
    for (int v : r) {
      ++count;
      got += v;
    }
    CHECK(count == n);
    CHECK(got == sent);
  });
}

TEST_CASE("many producers and many consumers: each value arrives once, each producer's in order") {
  weft::run([] {
    constexpr int producers = 6, consumers = 5;
    const int n = fewer(3000);
    for (std::size_t capacity : {0, 1, 16}) {
      chan<std::pair<int, int>> c{capacity};
      std::vector<std::vector<std::pair<int, int>>> got(consumers);
      weft::wait_group makers, takers;
      for (int p = 0; p < producers; ++p) {
        makers.go([=] {
          for (int i = 0; i < n; ++i) c.send({p, i});
        });
      }
      for (int k = 0; k < consumers; ++k) {
        takers.go([=, &got] {
          for (auto& v : c) got[static_cast<std::size_t>(k)].push_back(v);
        });
      }
      makers.wait();
      c.close();
      takers.wait();
      std::set<std::pair<int, int>> all;
      std::size_t total = 0;
      for (auto& one : got) {
        std::array<int, producers> last{};
        last.fill(-1);
        for (auto& [p, i] : one) {
          if (i <= last[static_cast<std::size_t>(p)]) FAIL("out of order");
          last[static_cast<std::size_t>(p)] = i;
        }
        all.insert(one.begin(), one.end());
        total += one.size();
      }
      CHECK(total == static_cast<std::size_t>(producers * n));
      CHECK(all.size() == total);
    }
  });
}

// runtime's TestPseudoRandomSend
TEST_CASE("two sends of one select on one channel are both chosen, in no fixed order") {
  weft::run([] {
    for (std::size_t capacity : {0, 100}) {
      chan<int> c{capacity};
      constexpr int n = 1000;
      chan<void> done;
      std::array<int, 2> seen{};
      weft::go([&, c, done] {
        int changes = 0, last = -1;
        for (int i = 0; i < n; ++i) {
          int v = *c.recv();
          ++seen[static_cast<std::size_t>(v)];
          changes += v != last;
          last = v;
        }
        if (changes < n / 4) seen[0] = 0;
        done.close();
      });
      for (int i = 0; i < n; ++i) weft::select(weft::on_send(c, 0), weft::on_send(c, 1));
      done.recv();
      CHECK(seen[0] > n / 3);
      CHECK(seen[1] > n / 3);
    }
  });
}

TEST_CASE("channels of channels: a reply comes back on the channel that was sent") {
  weft::run([] {
    struct request {
      int x;
      chan<int> reply;
    };
    chan<request> server;
    weft::go([=] {
      for (auto& r : server) r.reply.send(r.x * r.x);
    });
    for (int i = 0; i < 100; ++i) {
      chan<int> reply;
      server.send({i, reply});
      CHECK(reply.recv() == i * i);
    }
    server.close();

    chan<chan<chan<int>>> deep{1};
    chan<chan<int>> inner{1};
    chan<int> innermost{1};
    innermost.send(5);
    inner.send(innermost);
    deep.send(inner);
    CHECK(deep.recv()->recv()->recv() == 5);
  });
}

TEST_CASE("move-only elements go through every form") {
  weft::run([] {
    using box = std::unique_ptr<int>;
    chan<box> c, b{4};
    weft::go([=] {
      c.send(std::make_unique<int>(1));
      box v = std::make_unique<int>(2);
      while (!c.try_send(std::move(v))) weft::yield();
      if (v) std::abort();
      v = std::make_unique<int>(3);
      while (!c.send_for(std::move(v), 1ms)) weft::yield();
      weft::select(weft::on_send(c, std::make_unique<int>(4)));
      c.close();
    });
    CHECK(**c.recv() == 1);
    box v;
    CHECK(c.recv(v));
    CHECK(*v == 2);
    CHECK(c.recv_for(v, late) == recv_result::value);
    CHECK(*v == 3);
    for (auto& p : c) CHECK(*p == 4);
    b.send(std::make_unique<int>(5));
    CHECK(b.try_recv(v) == recv_result::value);
    CHECK(*v == 5);
  });
}

TEST_CASE("try_send that would wait leaves the value where it is") {
  weft::run([] {
    chan<std::string> full{1};
    full.send("there");
    std::string s(100, 'x');
    CHECK_FALSE(full.try_send(std::move(s)));
    CHECK(s == std::string(100, 'x'));  // NOLINT
    CHECK_FALSE(full.try_send(s));
    chan<std::string> unbuffered;
    CHECK_FALSE(unbuffered.try_send(std::move(s)));
    CHECK(s.size() == 100);  // NOLINT
    CHECK(full.recv() == "there");
    CHECK(full.try_send(std::as_const(s)));
    CHECK(s.size() == 100);
  });
}

TEST_CASE("a send or receive whose time is over leaves the value where it is, and does not come early") {
  weft::run([] {
    chan<std::unique_ptr<int>> c;
    auto v = std::make_unique<int>(3);
    auto begin = clock::now();
    CHECK_FALSE(c.send_for(std::move(v), 3ms));
    CHECK(clock::now() - begin >= 3ms);
    REQUIRE(v);  // NOLINT
    CHECK(*v == 3);
    begin = clock::now();
    CHECK(c.recv_for(v, 3ms) == recv_result::empty);
    CHECK(clock::now() - begin >= 3ms);
    REQUIRE(v);
    CHECK(c.recv_for(v, 0ms) == recv_result::empty);
    CHECK(c.recv_for(v, -1h) == recv_result::empty);
    CHECK_FALSE(c.send_for(std::move(v), -1h));
    REQUIRE(v);  // NOLINT

    // No waiter is left in the queues.
    weft::go([=] { c.send(std::make_unique<int>(9)); });
    CHECK(**c.recv() == 9);
  });
}

TEST_CASE("a limit that is too long to fit never passes") {
  weft::run([] {
    chan<int> c;
    weft::go([=] {
      weft::sleep(a_while);
      c.send(1);
      c.send_for(2, std::chrono::hours::max());
    });
    int v = 0;
    CHECK(c.recv_for(v, std::chrono::hours::max()) == recv_result::value);
    CHECK(c.recv_for(v, std::chrono::nanoseconds::max()) == recv_result::value);
    CHECK(v == 2);
  });
}

TEST_CASE("time limits that race with the other side lose no value and double none") {
  weft::run([] {
    const int n = fewer(4000);
    chan<counted> c;
    std::atomic<long> sent{0}, got{0};
    std::atomic<int> count_sent{0}, count_got{0};
    weft::wait_group senders, receivers;
    std::atomic<bool> over{false};
    for (int s = 0; s < 3; ++s) {
      senders.go([&, c, s] {
        for (int i = 0; i < n / 3; ++i) {
          counted v(i);
          bool ok = c.send_for(std::move(v), std::chrono::microseconds((i * 7 + s * 13) % 40));
          if (ok == v.holds) std::abort();  // NOLINT: untouched if and only if it was not sent
          if (ok) {
            sent += i;
            ++count_sent;
          }
        }
      });
    }
    for (int r = 0; r < 3; ++r) {
      receivers.go([&, c, r] {
        for (int i = 0; !over; ++i) {
          counted v;
          switch (c.recv_for(v, std::chrono::microseconds((i * 11 + r * 5) % 40))) {
            case recv_result::value:
              if (!v.holds) std::abort();
              got += v.value;
              ++count_got;
              break;
            case recv_result::closed: return;
            case recv_result::empty:
              if (v.holds) std::abort();
          }
        }
      });
    }
    senders.wait();
    over = true;
    receivers.wait();
    CHECK(count_sent == count_got);
    CHECK(sent == got);
  });
  CHECK(counted::objects == 0);
}

TEST_CASE("elements: constructed and destroyed in balance, whatever happens to them") {
  REQUIRE(counted::objects == 0);
  weft::run([] {
    {
      chan<counted> c{4}, u;
      for (int i = 0; i < 4; ++i) c.send(counted(i));
      CHECK_FALSE(c.try_send(counted(4)));
      CHECK_FALSE(c.send_for(counted(5), 1ms));
      CHECK(counted::values == 4);
      CHECK(c.recv()->value == 0);
      counted v(6);
      CHECK(c.recv(v));
      CHECK(v.value == 1);
      CHECK(counted::values == 3);  // two in the buffer, one in v
      c.close();
      CHECK_THROWS_AS(c.send(counted(7)), weft::channel_closed);
      CHECK(counted::values == 3);

      weft::wait_group w;
      for (int i = 0; i < 5; ++i) {
        w.go([=] {
          try {
            u.send(counted(i));
          } catch (const weft::channel_closed&) {}
        });
      }
      weft::sleep(a_while);
      CHECK(u.recv());
      u.close();
      w.wait();
      CHECK(counted::values == 3);
    }
    CHECK(counted::values == 0);  // the values left in the buffer were destroyed with the channel
    CHECK(counted::objects == 0);
  });
}

TEST_CASE("a channel with values in its buffer goes with its last handle") {
  weft::run([] {
    auto shared = std::make_shared<int>(1);
    {
      chan<std::shared_ptr<int>> c{3};
      chan<std::shared_ptr<int>> copy = c;
      weft::send_chan<std::shared_ptr<int>> tx = c;
      weft::recv_chan<std::shared_ptr<int>> rx = c;
      c.send(shared);
      copy.send(shared);
      tx.send(shared);
      CHECK(rx.recv() == shared);
      CHECK(shared.use_count() == 3);
      c = chan<std::shared_ptr<int>>(weft::nil);
      copy = c;
      tx = {};
      CHECK(shared.use_count() == 3);
    }
    CHECK(shared.use_count() == 1);
  });
}

TEST_CASE("elements of no size, of a page, and over-aligned ones") {
  weft::run([] {
    struct nothing {};
    struct page {
      std::array<unsigned char, 4096> bytes;
    };
    struct alignas(256) wide {
      int x;
      bool aligned() const { return reinterpret_cast<std::uintptr_t>(this) % 256 == 0; }
    };
    chan<nothing> n{2};
    n.send({});
    n.send({});
    CHECK_FALSE(n.try_send({}));
    CHECK(n.recv().has_value());

    chan<page> p{2};
    weft::go([=] {
      for (int i = 0; i < 20; ++i) {
        page v;
        v.bytes.fill(static_cast<unsigned char>(i));
        p.send(v);
      }
      p.close();
    });
    int i = 0;
    for (auto& v : p) {
      CHECK(std::count(v.bytes.begin(), v.bytes.end(), static_cast<unsigned char>(i)) == 4096);
      ++i;
    }
    CHECK(i == 20);

    chan<wide> w{3};
    for (int k = 0; k < 3; ++k) w.send({k});
    for (int k = 0; k < 3; ++k) {
      auto v = w.recv();
      REQUIRE(v);
      CHECK(v->aligned());
      CHECK(v->x == k);
    }
  });
}

TEST_CASE("elements that can be constructed but not assigned") {
  weft::run([] {
    struct fixed {
      const int x;
    };
    chan<fixed> c{2};
    c.send({1});
    c.send({2});
    fixed v{0};
    CHECK(c.recv(v));
    CHECK(std::launder(&v)->x == 1);
    CHECK(c.recv()->x == 2);
  });
}

TEST_CASE("recv assigns, so that a value keeps its memory resource") {
  weft::run([] {
    std::pmr::monotonic_buffer_resource mine, theirs;
    chan<std::pmr::string> c{3};
    for (int i = 0; i < 3; ++i) c.send(std::pmr::string("longer than what fits into the string itself", &theirs));
    std::pmr::string v(&mine);
    CHECK(c.recv(v));
    CHECK(c.try_recv(v) == recv_result::value);
    CHECK(c.recv_for(v, 1s) == recv_result::value);
    CHECK(v == "longer than what fits into the string itself");
    CHECK(v.get_allocator().resource() == &mine);
  });
}

// No lock is held there, and the goroutine may come back on another thread.
TEST_CASE("values that are left when the last handle goes may wait in their destructors") {
  struct waits {
    explicit waits(std::atomic<int>* n) noexcept : destroyed(n) {}
    waits(waits&& o) noexcept : destroyed(std::exchange(o.destroyed, nullptr)) {}
    ~waits() {
      if (!destroyed) return;
      weft::sleep(1ms);
      ++*destroyed;
    }
    std::atomic<int>* destroyed;
  };
  weft::run([] {
    std::atomic<int> destroyed{0};
    {
      chan<waits> c{4};
      for (int i = 0; i < 4; ++i) c.send(waits(&destroyed));
    }
    CHECK(destroyed == 4);
  });
}

TEST_CASE("elements whose & means something else") {
  struct pointer_like {
    int n = 0;
    pointer_like* operator&() const = delete;
  };
  weft::run([] {
    weft::chan<pointer_like> c{1};
    pointer_like p{3}, q;
    c.send(p);
    CHECK(c.recv(q));
    CHECK(c.try_send(p));
    CHECK(c.try_recv(q) == weft::recv_result::value);
    CHECK(c.send_for(pointer_like{4}, 1s));
    CHECK(weft::select(weft::on_recv(c, [](pointer_like v) { CHECK(v.n == 4); })) == 0);
    CHECK(weft::select(weft::on_send(c, p)) == 0);
    CHECK(c.recv()->n == 3);
    CHECK(weft::select(weft::on_send(c, pointer_like{5})) == 0);
    c.close();
    for (auto& v : c) CHECK(v.n == 5);
  });
}

TEST_CASE("a buffer that is too large is an error, not a crash") {
  CHECK_THROWS_AS(chan<int>(SIZE_MAX / 2), std::length_error);
  CHECK_THROWS_AS((chan<std::array<char, 4096>>(SIZE_MAX / 4096)), std::length_error);
}

TEST_CASE("a channel is a range of what comes, and not of what is in its buffer") {
  static_assert(std::ranges::input_range<chan<int>> && !std::ranges::sized_range<chan<int>>);
  static_assert(!std::ranges::sized_range<weft::recv_chan<int>>);
  weft::run([] {
    for (int capacity : {0, 2, 20}) {
      chan<int> c{capacity};
      weft::go([=] {
        for (int i = 1; i <= 10; ++i) c.send(i);
        c.close();
      });
      std::vector<int> got;
#if defined(__clang__) && __clang_major__ < 16  // cannot use the views of libstdc++
      std::ranges::transform(std::counted_iterator(c.begin(), 4), std::default_sentinel, std::back_inserter(got),
                             [](int x) { return 2 * x; });
#else
      for (int v : c | std::views::transform([](int x) { return 2 * x; }) | std::views::take(4)) got.push_back(v);
#endif
      CHECK(got == std::vector{2, 4, 6, 8});
      CHECK(std::ranges::distance(weft::recv_chan<int>(c)) == 6);
    }
  });
}

TEST_CASE("range-for receives until the channel is closed and empty") {
  weft::run([] {
    chan<std::string> c{2};
    weft::go([=] {
      for (int i = 0; i < 50; ++i) c.send(std::to_string(i));
      c.close();
    });
    int i = 0;
    for (auto& s : c) CHECK(s == std::to_string(i++));
    CHECK(i == 50);
    for (auto& s : c) FAIL("received " << s << " from a closed channel");

    chan<std::unique_ptr<int>> m{1};
    m.send(std::make_unique<int>(1));
    m.close();
    std::unique_ptr<int> kept;
    for (auto& p : m) kept = std::move(p);
    CHECK(kept);
  });
}

TEST_CASE("size and capacity") {
  weft::run([] {
    chan<int> u, c{3};
    CHECK(u.capacity() == 0);
    CHECK(c.capacity() == 3);
    CHECK(c.size() == 0);
    c.send(1);
    c.send(2);
    CHECK(c.size() == 2);
    weft::send_chan<int> tx = c;
    weft::recv_chan<int> rx = c;
    CHECK(tx.size() == 2);
    CHECK(rx.capacity() == 3);
    rx.recv();
    CHECK(c.size() == 1);
    chan<void> s{2};
    s.send();
    CHECK(s.size() == 1);
    CHECK(s.capacity() == 2);
  });
}

TEST_CASE("handles: equality is identity, copies and views share the channel") {
  chan<int> a{1}, b{1};
  chan<int> c = a;
  CHECK(a == c);
  CHECK_FALSE(a == b);
  weft::send_chan<int> tx = a;
  weft::recv_chan<int> rx = c;
  CHECK(tx == a);
  CHECK(tx == rx);
  CHECK(chan<int>(weft::nil) == chan<int>(weft::nil));
  std::unordered_map<chan<int>, char> name_of{{a, 'a'}, {b, 'b'}};
  CHECK(name_of.at(c) == 'a');
  CHECK(std::hash<weft::send_chan<int>>()(tx) == std::hash<weft::recv_chan<int>>()(rx));
  tx.send(4);
  CHECK(rx.recv() == 4);
  const chan<int> constant = a;
  constant.send(5);
  CHECK(constant.recv() == 5);
}

TEST_CASE("channels without a value carry signals") {
  weft::run([] {
    chan<void> c, b{2};
    CHECK(b.try_send());
    CHECK(b.try_send());
    CHECK_FALSE(b.try_send());
    CHECK_FALSE(b.send_for(1ms));
    CHECK(b.recv());
    CHECK(b.try_recv() == recv_result::value);
    CHECK(b.try_recv() == recv_result::empty);
    CHECK(b.recv_for(1ms) == recv_result::empty);
    int n = 0;
    weft::wait_group w;
    w.go([=] {
      for (int i = 0; i < 100; ++i) c.send();
      c.close();
    });
    while (c.recv()) ++n;
    CHECK(n == 100);
    CHECK(c.try_recv() == recv_result::closed);
    CHECK(c.recv_for(1h) == recv_result::closed);
    w.wait();
  });
}

TEST_CASE("a channel is usable from destructors while an exception unwinds") {
  weft::run([] {
    chan<int> c;
    struct sender {
      chan<int> c;
      ~sender() { c.send(std::uncaught_exceptions()); }
    };
    weft::go([=] {
      try {
        sender s{c};
        throw std::runtime_error("on the way");
      } catch (const std::runtime_error&) {
        c.send(std::uncaught_exceptions());
      }
    });
    CHECK(c.recv() == 1);
    CHECK(c.recv() == 0);
  });
}

TEST_CASE("threads that weft did not start use channels with goroutines") {
  weft::run([] {
    const int n = fewer(2000);
    chan<int> to_thread, from_thread{3};
    std::thread t([=] {
      for (int v : to_thread) from_thread.send(v + 1);
      from_thread.close();
    });
    weft::go([=] {
      for (int i = 0; i < n; ++i) to_thread.send(i);
      to_thread.close();
    });
    int next = 1;
    for (int v : from_thread) {
      if (v != next++) FAIL("out of order");
    }
    CHECK(next == n + 1);
    weft::blocking([&] { t.join(); });
  });
}

TEST_CASE("threads: time limits, close and errors work there as in goroutines") {
  weft::run([] {
    chan<int> c, never;
    chan<int> results{8};
    std::thread t([=] {
      int v = 0;
      auto begin = clock::now();
      results.send(never.recv_for(v, 3ms) == recv_result::empty && clock::now() - begin >= 3ms);
      results.send(!never.send_for(1, 1ms));
      results.send(never.try_recv(v) == recv_result::empty);
      results.send(c.recv() == std::nullopt);
      try {
        c.send(1);
      } catch (const weft::channel_closed&) {
        results.send(1);
      }
    });
    weft::sleep(10ms);
    c.close();
    for (int i = 0; i < 5; ++i) CHECK(results.recv() == 1);
    weft::blocking([&] { t.join(); });
  });
}

TEST_CASE("without a runtime, channels work between plain threads") {
  chan<int> c, b{4};
  constexpr int n = 2000;
  std::vector<std::thread> threads;
  std::atomic<long> sum{0};
  std::atomic<int> timeouts{0};
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([=] {
      for (int i = 1; i <= n; ++i) c.send(i);
    });
    threads.emplace_back([=, &timeouts] {
      int moved = 0;
      while (moved < n) {
        int v;
        if (c.recv_for(v, 100us) != recv_result::value) {
          ++timeouts;
          continue;
        }
        ++moved;
        b.send(v);
      }
    });
  }
  threads.emplace_back([=, &sum] {
    for (int v : b) sum += v;
  });
  for (int t = 0; t < 4; ++t) threads[static_cast<std::size_t>(t)].join();
  b.close();
  threads.back().join();
  CHECK(sum == 2L * n * (n + 1) / 2);
}

TEST_CASE("a channel outlives the run() in which it was used") {
  chan<int> c{2};
  weft::run([=] { c.send(1); });
  CHECK(c.recv() == 1);
  c.send(2);
  CHECK(weft::run([=] { return *c.recv(); }) == 2);
}

TEST_CASE("goroutines that an ended run() left waiting in a channel are passed over") {
  chan<int> c;
  weft::run([=] {
    for (int i = 0; i < 3; ++i) {
      weft::go([=] { c.send(100); });
      weft::go([=] { c.send_for(101, 1h); });
    }
    chan<int> d;
    weft::go([=] { weft::select(weft::on_send(c, 102), weft::on_recv(d)); });
    weft::sleep(a_while);
  });
  CHECK(weft::run([=] {
          weft::go([=] { c.send(1); });
          return *c.recv();
        }) == 1);
  int v = 0;
  CHECK(c.try_recv(v) == recv_result::empty);
}

TEST_CASE("a goroutine may send to itself through a buffer, and keep a channel in its own closure") {
  weft::run([] {
    auto t = weft::spawn([] {
      chan<chan<int>> self{1};
      chan<int> c{1};
      self.send(c);
      self.recv()->send(3);
      return *c.recv();
    });
    CHECK(t.join() == 3);
  });
}

TEST_CASE("ping-pong: two goroutines alternate strictly") {
  weft::run([] {
    chan<int> ping, pong;
    weft::go([=] {
      for (int v : ping) pong.send(v + 1);
      pong.close();
    });
    int v = 0;
    for (int i = 0; i < fewer(20000); ++i) {
      ping.send(v);
      int w = *pong.recv();
      if (w != v + 1) FAIL("got " << w);
      v = w;
    }
    ping.close();
    CHECK(pong.recv() == std::nullopt);
  });
}

TEST_CASE("chan: a request carries the channel for its answer") {
  struct request {
    int number;
    chan<request> answer;
  };
  weft::run([] {
    chan<request> requests;
    weft::go([=] {
      for (auto& r : requests) r.answer.send({r.number + 1, chan<request>(weft::nil)});
    });
    chan<request> answer(1);
    requests.send({1, answer});
    CHECK(answer.recv()->number == 2);
    requests.close();
  });
}

TEST_CASE("chan: with a context that is cancelled already nothing is sent or received") {
  weft::run([] {
    auto [ctx, cancel] = weft::with_cancel(weft::background());
    cancel();
    chan<int> c(100);
    chan<void> signals(100);
    for (int i = 0; i < 20; ++i) {
      CHECK_THROWS_AS(c.send(1, ctx), std::system_error);
      CHECK_THROWS_AS(signals.send(ctx), std::system_error);
    }
    CHECK(c.size() + signals.size() == 0);
    c.send(1);
    signals.send();
    CHECK_THROWS_AS(c.recv(ctx), std::system_error);
    CHECK_THROWS_AS(signals.recv(ctx), std::system_error);
    CHECK(c.size() + signals.size() == 2);
  });
}

TEST_CASE("chan: a context whose deadline passes says that it was the context's") {
  weft::run([] {
    auto [ctx, cancel] = weft::with_timeout(weft::background(), 1ms);
    chan<int> c;
    for (int i = 0; i < 2; ++i) {  // the second time, the deadline has passed already
      try {
        c.recv(ctx);
        FAIL("nothing was sent");
      } catch (const std::system_error& e) {
        CHECK(e.code() == std::errc::timed_out);
        CHECK(std::string(e.what()).starts_with("weft: receive: the context's deadline has passed"));
      }
    }
  });
}

namespace {

// Sends a word to another channel whenever it is moved.
struct announces_moves {
  const chan<int>* to;
  explicit announces_moves(const chan<int>& c) : to(&c) {}
  announces_moves(announces_moves&& from) noexcept : to(from.to) { (void)to->try_send(1); }
};

}  // namespace

// Inside the runtime the goroutine's P cannot be taken.
TEST_CASE(
    "chan: a value's move that uses another channel leaves the goroutine inside the runtime, and its end outside") {
  weft::run(
      [] {
        chan<int> moves(100);
        chan<announces_moves> c(1);
        c.send(announces_moves(moves));
        CHECK(moves.size() >= 1);
        std::atomic<bool> other_ran = false;
        weft::go([&] { other_ran = true; });
        const auto give_up = clock::now() + late;
        while (!other_ran && clock::now() < give_up) {}
        CHECK(other_ran);
      },
      {.procs = 1});
}

TEST_CASE("chan: a capacity of any integer type") {
  int n = 3;
  const std::uint8_t m = 4;
  CHECK(chan<int>{n}.capacity() == 3);
  CHECK(chan<std::string>{m}.capacity() == 4);
  CHECK(chan<void>{5L}.capacity() == 5);
  CHECK_THROWS_AS(chan<int>{n - 4}, std::length_error);
  CHECK_THROWS_AS(chan<void>{n - 4}, std::length_error);
}
