// What Go's select promises (runtime/chan_test.go, test/chan/select*.go, doubleselect.go), one case each.

#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"

#include <any>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>
#include <weft/weft.hpp>

using namespace weft::test;
using weft::chan;
using weft::on_default;
using weft::on_recv;
using weft::on_send;
using weft::on_timeout;
using weft::recv_result;
using weft::select;

namespace app {
struct message {};
// Not what weft calls when it is given a channel of these.
template <class F>
int on_recv(const chan<message>&, F) {
  return 0;
}
}  // namespace app

TEST_CASE("select: a function of the same name beside the values' type is no case") {
  weft::run([] {
    chan<app::message> c{1};
    std::optional<app::message> got;
    c.send({});
    CHECK(select(weft::on_recv(c, got)) == 0);
    CHECK(got);
  });
}

TEST_CASE("select: the ready case is done, its handler runs once, its index comes back") {
  weft::run([] {
    chan<int> a{1}, b{1}, full{1};
    full.send(0);
    b.send(5);
    int ran = 0, got = 0;
    CHECK(select(on_recv(a, [&](std::optional<int>) { ran += 100; }), on_send(full, 1, [&] { ran += 1000; }),
                 on_recv(b, [&](std::optional<int> v) {
                   ++ran;
                   got = *v;
                 })) == 2);
    CHECK(ran == 1);
    CHECK(got == 5);
    CHECK(select(on_recv(b, [&](std::optional<int>) { ran += 100; }), on_send(a, 9, [&] { ++ran; })) == 1);
    CHECK(ran == 2);
    CHECK(a.recv() == 9);
  });
}

TEST_CASE("select: handlers may be left out, or take nothing, a value, an optional or whether it is open") {
  weft::run([] {
    chan<int> c{8};
    for (int i = 0; i < 5; ++i) c.send(i);
    int n = 0;
    CHECK(select(on_recv(c)) == 0);
    CHECK(select(on_recv(c, [&] { n += 1; })) == 0);
    CHECK(select(on_recv(c, [&](int v) { n += v; })) == 0);
    CHECK(select(on_recv(c, [&](std::optional<int> v) { n += *v; })) == 0);
    c.send(0);
    CHECK(select(on_recv(c, [&](auto v) { n += v.value(); })) == 0);
    std::optional<int> out;
    CHECK(select(on_recv(c, out)) == 0);
    CHECK(out == 0);
    CHECK(n == 1 + 2 + 3 + 4);
    CHECK(select(on_send(c, 1)) == 0);
    CHECK(select(on_default()) == 0);
    CHECK(select(on_timeout(0ms)) == 0);

    chan<void> s{2};
    bool open = false;
    CHECK(select(on_send(s)) == 0);
    CHECK(select(on_send(s, [&] { ++n; })) == 0);
    CHECK(select(on_recv(s, [&](bool o) { open = o; })) == 0);
    CHECK(open);
    CHECK(select(on_recv(s, [&] { ++n; })) == 0);
    CHECK(n == 12);
    s.close();
    CHECK(select(on_recv(s, [&](bool o) { open = o; })) == 0);
    CHECK_FALSE(open);
    c.close();
    CHECK(select(on_recv(c, out)) == 0);  // receives the 1
    CHECK(select(on_recv(c, out)) == 0);
    CHECK_FALSE(out);
    CHECK_THROWS_AS(select(on_recv(c, [](int) {})), weft::channel_closed);
  });
}

TEST_CASE("select: the default is taken only if nothing is ready, and select does not wait") {
  weft::run([] {
    chan<int> c{1};
    CHECK(select(on_recv(c), on_default()) == 1);
    CHECK(select(on_send(c, 1), on_default()) == 0);
    CHECK(select(on_send(c, 2), on_default()) == 1);
    CHECK(select(on_default(), on_recv(c)) == 1);
    CHECK(select(on_default(), on_recv(c)) == 0);
    c.close();
    for (int i = 0; i < 100; ++i) CHECK(select(on_recv(c), on_default()) == 0);
    chan<int> u;
    weft::go([=] { u.send(3); });
    CHECK(eventually([&] { return select(on_recv(u), on_default()) == 0; }));
    weft::go([=] { u.recv(); });
    CHECK(eventually([&] { return select(on_send(u, 1), on_default()) == 0; }));
  });
}

TEST_CASE("select: an lvalue that cannot be sent at once is not copied") {
  struct copied {
    explicit copied(int* n) : copies(n) {}
    copied(const copied& other) : copies(other.copies) { ++*copies; }
    copied(copied&&) noexcept = default;
    int* copies;
  };
  int copies = 0;
  const copied value(&copies);
  for (weft::chan<copied> c : {weft::chan<copied>(0), weft::chan<copied>(weft::nil)}) {
    CHECK(weft::select(weft::on_send(c, value), weft::on_default()) == 1);
    CHECK(weft::select(weft::on_default(), weft::on_send(c, value)) == 0);
    CHECK(weft::select(weft::on_send(c, value), weft::on_timeout(0ms)) == 1);
    CHECK(!c.try_send(value));
  }
  CHECK(copies == 0);
  weft::chan<copied> c(2);
  CHECK(weft::select(weft::on_send(c, value), weft::on_default()) == 0);
  CHECK(c.try_send(value));
  CHECK(!c.try_send(value));
  CHECK(copies == 2);
  c.close();
  CHECK_THROWS_AS(c.try_send(value), weft::channel_closed);
  CHECK_THROWS_AS(weft::select(weft::on_send(c, value), weft::on_default()), weft::channel_closed);
}

TEST_CASE("select: of several lvalues only the one that is sent is copied") {
  struct copied {
    copied(int* n, int throws) : copies(n), throws_at(throws) {}
    copied(const copied& other) : copies(other.copies), throws_at(other.throws_at) {
      if (++*copies == throws_at) throw std::runtime_error("copied");
    }
    copied(copied&&) noexcept = default;
    int* copies;
    int throws_at;
  };
  weft::run([] {
    int copies = 0;
    const copied value(&copies, -1);
    chan<copied> full, full_too, room(1);
    chan<int> in(1);

    SECTION("another case is chosen") {
      for (int i = 0; i < 50; ++i) {
        in.send(i);
        CHECK(select(on_send(full, value), on_recv(in), on_send(full_too, value)) == 1);
        CHECK(select(on_send(full, value), on_send(full_too, value), on_default()) == 2);
      }
      CHECK(copies == 0);
    }
    SECTION("one of them is chosen") {
      CHECK(select(on_send(full, value), on_send(room, value), on_send(full_too, value)) == 1);
      CHECK(copies == 1);
      room.close();
      CHECK_THROWS_AS(select(on_send(full, value), on_send(room, value)), weft::channel_closed);
    }
    SECTION("a list") {
      std::vector<weft::select_case> cases{on_send(full, value), on_send(room, value), on_recv(in)};
      copies = 0;
      CHECK(select(cases) == 1);
      CHECK(copies == 1);
      in.send(1);
      CHECK(select(cases) == 2);
      CHECK(copies == 1);
    }
    SECTION("it has to wait") {
      weft::go([=] {
        weft::sleep(a_while);
        full.recv();
      });
      const chan<copied> none(weft::nil);
      CHECK(select(on_send(full, value), on_recv(in), on_send(full_too, value), on_send(none, value)) == 0);
      CHECK(copies == 2);
      CHECK(select(on_send(none, value), on_timeout(1ms)) == 1);
      CHECK(copies == 2);
      CHECK(select(on_send(full, value), on_recv(in), on_timeout(1ms)) == 2);
    }
    SECTION("each that is ready has the same chance") {
      int sent = 0;
      constexpr int rounds = 1000;
      for (int i = 0; i < rounds; ++i) {
        if (in.size() == 0) in.send(1);
        if (select(on_send(room, value), on_recv(in)) == 0) {
          ++sent;
          room.recv();
        }
      }
      CHECK(sent > rounds / 2 - 100);  // six times the standard deviation
      CHECK(sent < rounds / 2 + 100);
      CHECK(copies == sent);
    }
    SECTION("the copy throws") {
      const copied throwing(&copies, 1);
      CHECK_THROWS_AS(select(on_send(full, value), on_send(room, throwing)), std::runtime_error);
      copies = 0;
      CHECK_THROWS_AS(select(on_send(full, throwing), on_recv(in), on_timeout(1ms)), std::runtime_error);
      CHECK(room.size() == 0);
      in.send(1);
      CHECK(select(on_send(full, value), on_recv(in)) == 1);
      CHECK(select(on_send(room, value), on_recv(in)) == 0);
    }
  });
}

TEST_CASE("select: a case with an lvalue of another type sends it again and again") {
  struct animal {
    virtual ~animal() = default;
  };
  struct dog : animal {};
  weft::run([] {
    chan<std::shared_ptr<animal>> animals(4);
    const auto rex = std::make_shared<dog>();
    std::vector<weft::select_case> one{on_send(animals, rex)};
    auto named = on_send(animals, rex);
    for (int i = 0; i < 2; ++i) {
      CHECK(select(one) == 0);
      CHECK(select(named) == 0);
    }
    for (int i = 0; i < 4; ++i) CHECK(animals.recv() == rex);

    chan<std::string> names(6);
    std::string_view name = "rex";
    auto changed = on_send(names, name);
    std::vector<weft::select_case> literal{on_send(names, "a name that is not short at all")};
    CHECK(select(changed, on_default()) == 0);
    name = "max";
    CHECK(select(changed, on_default()) == 0);
    for (int i = 0; i < 2; ++i) CHECK(select(literal) == 0);
    for (const char* want : {"rex", "max", "a name that is not short at all", "a name that is not short at all"}) {
      CHECK(names.recv() == want);
    }

    chan<long> numbers(2);
    const int seven = 7;
    for (int i = 0; i < 2; ++i) CHECK(select(on_send(numbers, seven), on_default()) == 0);
    CHECK(numbers.recv() == 7);
    CHECK(numbers.recv() == 7);

    chan<std::unique_ptr<int>> owners(1);  // these cannot be copied
    int* raw = new int(3);
    CHECK(select(on_send(owners, raw), on_default()) == 0);
    CHECK(**owners.recv() == 3);
  });
}

TEST_CASE("select: it waits until one case is ready, and leaves the other channels alone") {
  weft::run([] {
    chan<int> a, b, result;
    weft::go([=] {
      select(on_recv(a, [&](std::optional<int> v) { result.send(*v); }),
             on_recv(b, [&](std::optional<int> v) { result.send(100 + *v); }));
    });
    weft::sleep(a_while);
    CHECK(result.size() == 0);
    b.send(1);
    CHECK(result.recv() == 101);
    // Nobody receives from a any more.
    CHECK_FALSE(a.try_send(1));
    CHECK_FALSE(b.try_send(1));
  });
}

// test/chan/select3.go: which forms wait and which do not.
TEST_CASE("select: what blocks and what does not") {
  weft::run([] {
    auto ready = [](auto f) {
      std::atomic<bool> done{false};
      auto t = weft::spawn([&] {
        f();
        done = true;
      });
      CHECK(eventually([&] { return done.load(); }));
    };
    chan<int> nil_chan{weft::nil}, closed, unbuffered, full{1}, empty{1};
    full.send(1);
    closed.close();
    ready([=] { select(on_recv(closed)); });
    ready([=] { select(on_recv(nil_chan), on_recv(closed)); });
    ready([=] { select(on_recv(unbuffered), on_default()); });
    ready([=] { select(on_send(unbuffered, 1), on_default()); });
    ready([=] { select(on_send(empty, 1)); });
    ready([=] { select(on_recv(empty)); });
    ready([=] { select(on_recv(full), on_send(nil_chan, 1)); });
    ready([=] { select(on_send(full, 1), on_recv(nil_chan)); });
    ready([=] { select(on_recv(nil_chan), on_timeout(1ms)); });
  });
  // Selects that block forever stay behind when run() ends.
  weft::run([] {
    chan<int> nil_chan{weft::nil}, unbuffered, full{1};
    full.send(1);
    std::atomic<int> came_back{0};
    weft::go([&] {
      select();
      ++came_back;
    });
    weft::go([&] {
      select(on_recv(nil_chan), on_send(nil_chan, 1));
      ++came_back;
    });
    weft::go([&] {
      select(on_recv(unbuffered));
      ++came_back;
    });
    weft::go([&] {
      select(on_send(full, 1), on_recv(nil_chan));
      ++came_back;
    });
    weft::go([&] {
      std::vector<weft::select_case> none;
      select(none);
      ++came_back;
    });
    // The goroutines borrow the channels, so all of them have to wait before main returns.
    CHECK(eventually([] { return weft::runtime_stats().waiting >= 5; }));
    weft::sleep(a_while);
    CHECK(came_back == 0);
  });
}

// runtime's TestSelectFairness
TEST_CASE("select: several ready cases have equal chances") {
  weft::run([] {
    chan<int> a{1}, b{1}, c{1};
    constexpr int trials = 10000;
    std::array<int, 3> n{};
    for (int i = 0; i < trials; ++i) {
      (void)a.try_send(1);
      (void)b.try_send(1);
      ++n[select(on_recv(a), on_recv(b), on_send(c, 1))];
      int v;
      (void)c.try_recv(v);
    }
    // Chi-squared with 2 degrees of freedom; a fair choice exceeds 20 once in 22,000 runs.
    double x = 0;
    for (int k : n) x += std::pow(k - trials / 3.0, 2) / (trials / 3.0);
    INFO("chosen " << n[0] << ", " << n[1] << ", " << n[2] << " times");
    CHECK(x < 20);
  });
}

TEST_CASE("select: a channel that is always ready does not starve another") {
  weft::run([] {
    chan<int> always, sometimes;
    always.close();
    weft::go([=] {
      for (int i = 0; i < 100; ++i) sometimes.send(i);
      sometimes.close();
    });
    int n = 0, from_always = 0;
    bool open = true;
    while (open) {
      select(on_recv(always, [&](std::optional<int>) { ++from_always; }), on_recv(sometimes, [&](std::optional<int> v) {
               open = v.has_value();
               n += open;
             }));
      if (from_always % 64 == 0) weft::yield();
    }
    CHECK(n == 100);
  });
}

// runtime's TestSelfSelect
TEST_CASE("select: one goroutine's send and receive on one channel do not meet") {
  weft::run([] {
    for (std::size_t capacity : {0, 10}) {
      chan<int> c{capacity};
      weft::wait_group w;
      std::atomic<int> wrong{0};
      const int n = fewer(1000);
      for (int p = 0; p < 2; ++p) {
        w.go([=, &wrong] {
          for (int i = 0; i < n; ++i) {
            auto check = [&](std::optional<int> v) {
              if (capacity == 0 && *v == p) ++wrong;
            };
            if (p == 0 || i % 2 == 0) {
              select(on_send(c, p), on_recv(c, check));
            } else {
              select(on_recv(c, check), on_send(c, p));
            }
          }
        });
      }
      w.wait();  // each operation of one goroutine meets one of the other, or there is always room or a value
      CHECK(wrong == 0);
    }
  });
}

// runtime's TestSelectStress
TEST_CASE("select: four channels, senders and receivers, single operations and selects at once") {
  weft::run([] {
    const int n = fewer(4000);
    std::array<chan<int>, 4> c{chan<int>(), chan<int>(), chan<int>(2), chan<int>(3)};
    weft::wait_group w;
    std::array<std::atomic<int>, 4> received{};
    for (std::size_t k = 0; k < 4; ++k) {
      w.go([=, &c] {
        for (int i = 0; i < n; ++i) c[k].send(0);
      });
      w.go([=, &c, &received] {
        for (int i = 0; i < n; ++i) {
          c[k].recv();
          ++received[k];
        }
      });
    }
    w.go([=, &c] {
      std::array<int, 4> left{n, n, n, n};
      std::array<chan<int>, 4> mine = c;
      for (int i = 0; i < 4 * n; ++i) {
        std::size_t k = select(on_send(mine[3], 0), on_send(mine[2], 0), on_send(mine[0], 0), on_send(mine[1], 0));
        std::size_t which = std::array<std::size_t, 4>{3, 2, 0, 1}[k];
        if (--left[which] == 0) mine[which] = chan<int>(weft::nil);
      }
    });
    w.go([=, &c, &received] {
      std::array<int, 4> left{n, n, n, n};
      std::array<chan<int>, 4> mine = c;
      for (int i = 0; i < 4 * n; ++i) {
        std::size_t k = select(on_recv(mine[0]), on_recv(mine[1]), on_recv(mine[2]), on_recv(mine[3]));
        ++received[k];
        if (--left[k] == 0) mine[k] = chan<int>(weft::nil);
      }
    });
    w.wait();
    for (auto& r : received) CHECK(r == 2 * n);
  });
}

TEST_CASE("select: a value in braces") {
  struct point {
    int x, y;
  };
  chan<point> c{1};
  REQUIRE(select(on_send(c, {1, 2})) == 0);
  REQUIRE(c.recv()->y == 2);
}

// runtime's TestSelectDuplicateChannel
TEST_CASE("select: one channel in several cases") {
  weft::run([] {
    chan<int> c, d, e, done{3};
    weft::go([=] {
      select(on_recv(c), on_recv(d), on_recv(e));
      e.send(9);
      done.send(1);
    });
    weft::sleep(a_while);
    weft::go([=] {
      std::optional<int> v;
      select(on_recv(c, v), on_recv(c, v), on_recv(d));
      done.send(v == 8 ? 1 : 0);
    });
    weft::sleep(a_while);
    d.send(7);  // wakes the first
    CHECK(e.recv() == 9);
    c.send(8);  // the second is still in c's queue, with both of its cases
    CHECK(done.recv() == 1);
    CHECK(done.recv() == 1);
    CHECK_FALSE(c.try_send(1));

    std::array<int, 3> n{};
    chan<int> b{1};
    for (int i = 0; i < 600; ++i) {
      b.send(i);
      ++n[select(on_recv(b), on_recv(b), on_recv(b))];
    }
    for (int k : n) CHECK(k > 100);
  });
}

// test/chan/doubleselect.go: a select does one thing, even if several cases become ready at once.
TEST_CASE("select: exactly one case of a waiting select is done") {
  weft::run([] {
    const int n = fewer(4000);
    std::array<chan<int>, 4> c{chan<int>(), chan<int>(), chan<int>(), chan<int>()};
    chan<int> out;
    weft::go([=] {
      for (int i = 0; i < n; ++i) {
        select(on_send(c[0], i), on_send(c[1], i), on_send(c[2], i), on_send(c[3], i));
      }
      for (auto& k : c) k.close();
    });
    weft::wait_group w;
    for (auto& k : c) {
      w.go([=] {
        for (int v : k) out.send(v);
      });
    }
    weft::go([&, out] {
      w.wait();
      out.close();
    });
    std::vector<int> seen(static_cast<std::size_t>(n), 0);
    for (int v : out) ++seen[static_cast<std::size_t>(v)];
    CHECK(std::all_of(seen.begin(), seen.end(), [](int k) { return k == 1; }));
  });
}

// test/chan/select6.go: a select whose waiter is in the middle of a queue takes itself out.
TEST_CASE("select: a waiter leaves the middle of a queue") {
  weft::run([] {
    chan<int> queue, other, got{8};
    auto plain = [=] {
      weft::go([=] { got.send(*queue.recv()); });
      weft::sleep(a_while);
    };
    plain();
    weft::go([=] { select(on_recv(queue), on_recv(other, [=](std::optional<int> v) { got.send(*v); })); });
    weft::sleep(a_while);
    plain();
    other.send(100);
    CHECK(got.recv() == 100);
    queue.send(1);
    queue.send(2);
    CHECK(*got.recv() + *got.recv() == 3);
    CHECK_FALSE(queue.try_send(3));
  });
}

// runtime's TestNonblockSelectRace: at each moment one of the channels is ready.
TEST_CASE("select with default: never the default while one of two channels is ready all the time") {
  weft::run([] {
    int wrong = 0;
    for (int i = 0; i < fewer(3000); ++i) {
      chan<int> a{1}, b{1};
      a.send(1);
      auto t = weft::spawn([=] { return select(on_recv(a), on_recv(b), on_default()); });
      b.send(1);
      int v;
      (void)a.try_recv(v);
      wrong += t.join() == 2;
    }
    CHECK(wrong == 0);
  });
}

// runtime's TestNonblockSelectRace2
TEST_CASE("select with default: never the default once a channel was closed") {
  weft::run([] {
    int wrong = 0;
    for (int i = 0; i < fewer(3000); ++i) {
      chan<int> a{1}, b;
      a.send(1);
      auto t = weft::spawn([=] { return select(on_recv(a), on_recv(b), on_default()); });
      b.close();
      int v;
      (void)a.try_recv(v);
      wrong += t.join() == 2;
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("select: a closed channel is ready to receive, and throws when a send to it is chosen") {
  weft::run([] {
    chan<int> c, open{1};
    c.close();
    bool closed = false;
    CHECK(select(on_recv(c, [&](std::optional<int> v) { closed = !v; })) == 0);
    CHECK(closed);
    CHECK_THROWS_AS(select(on_send(c, 1)), weft::channel_closed);
    int threw = 0, sent = 0;
    for (int i = 0; i < 200; ++i) {
      int v;
      (void)open.try_recv(v);
      try {
        sent += select(on_send(c, 1), on_send(open, 1)) == 1;
      } catch (const weft::channel_closed&) {
        ++threw;
      }
    }
    CHECK(threw > 20);
    CHECK(sent > 20);
  });
}

TEST_CASE("select: a timer that is due is chosen beside a channel that is always ready") {
  weft::run([] {
    chan<int> ready{1};
    ready.send(1);
    weft::timer due{1ms};
    bool rang = false;
    for (auto end = weft::time_point::clock::now() + 5s; !rang && weft::time_point::clock::now() < end;) {
      select(on_recv(ready, [&](int v) { ready.send(v); }), on_recv(due.channel(), [&](auto) { rang = true; }));
    }
    CHECK(rang);
  });
}

TEST_CASE("select: a close wakes those that wait to send and to receive") {
  weft::run([] {
    chan<int> c, d, results{8};
    for (int i = 0; i < 4; ++i) {
      weft::go([=] {
        if (i % 2 == 0) {
          select(on_recv(c, [&](std::optional<int> v) { results.send(v ? 0 : 1); }), on_recv(d));
          return;
        }
        try {
          select(on_recv(d), on_send(c, 1));
          results.send(0);
        } catch (const weft::channel_closed&) {
          results.send(2);
        }
      });
      // One goroutine at a time: otherwise they would serve each other.
      weft::sleep(a_while);
      c.close();
      CHECK(results.recv() == (i % 2 == 0 ? 1 : 2));
      c = chan<int>();
    }
  });
}

TEST_CASE("select: a close lets one that waits to send and to receive on the channel receive") {
  weft::run([] {
    for (int i = 0; i < 10; ++i) {
      chan<int> c;
      auto is_open = weft::spawn([=] {
        bool value = true;
        auto receive = on_recv(c, [&](std::optional<int> v) { value = v.has_value(); });
        i % 2 == 0 ? select(on_send(c, 1), std::move(receive)) : select(std::move(receive), on_send(c, 1));
        return value;
      });
      CHECK(eventually([] { return weft::runtime_stats().waiting == 1; }));
      c.close();
      CHECK_FALSE(is_open.join());
    }
  });
}

TEST_CASE("select: a time limit of zero or less is ready at once, but after ready channels and before a default") {
  weft::run([] {
    chan<int> c{1};
    CHECK(select(on_recv(c), on_timeout(0ms), on_default()) == 1);
    CHECK(select(on_recv(c), on_default(), on_timeout(-1s)) == 2);
    CHECK(select(on_recv(c), on_default(), on_timeout(1ms)) == 1);
    c.send(1);
    CHECK(select(on_timeout(0ms), on_recv(c)) == 1);
  });
}

TEST_CASE("select: a time limit does not pass early, and of several the earliest counts") {
  weft::run([] {
    chan<int> c;
    auto begin = clock::now();
    bool ran = false;
    CHECK(select(on_recv(c), on_timeout(5ms, [&] { ran = true; })) == 1);
    CHECK(clock::now() - begin >= 5ms);
    CHECK(ran);
    begin = clock::now();
    CHECK(select(on_timeout(1h), on_timeout(3ms), on_recv(c), on_timeout(2h)) == 1);
    CHECK(clock::now() - begin < late);
    CHECK(select(on_timeout(2ms)) == 0);
    weft::go([=] { c.send(1); });
    CHECK(select(on_recv(c), on_timeout(1h)) == 0);
    weft::go([=] { c.send(1); });
    CHECK(select(on_recv(c), on_timeout(std::chrono::hours::max())) == 0);
  });
}

TEST_CASE("select: a value is moved only if its case is chosen") {
  weft::run([] {
    chan<std::unique_ptr<int>> full{1}, open{1};
    full.send(nullptr);
    auto a = std::make_unique<int>(1), b = std::make_unique<int>(2);
    CHECK(select(on_send(full, std::move(a)), on_send(open, std::move(b))) == 1);
    REQUIRE(a);  // NOLINT: that is what is tested
    CHECK(*a == 1);
    CHECK_FALSE(b);  // NOLINT
    CHECK(select(on_send(full, std::move(a)), on_timeout(1ms)) == 1);
    CHECK(select(on_send(full, std::move(a)), on_default()) == 1);
    REQUIRE(a);  // NOLINT
    full.close();
    CHECK_THROWS_AS(select(on_send(full, std::move(a))), weft::channel_closed);
    REQUIRE(a);  // NOLINT

    chan<std::string> s{1};
    std::string text(50, 'x');
    CHECK(select(on_send(s, text)) == 0);  // an lvalue is copied
    CHECK(text.size() == 50);
    CHECK(s.recv() == text);
    CHECK(select(on_send(s, "converted")) == 0);
    CHECK(s.recv() == "converted");
  });
}

TEST_CASE("select: time limits that race with the other side lose no value") {
  weft::run([] {
    const int n = fewer(4000);
    chan<int> c, d;
    std::atomic<long> sent{0}, got{0};
    std::atomic<bool> over{false};
    weft::wait_group senders, receivers;
    for (int s = 0; s < 2; ++s) {
      senders.go([&, c, d, s] {
        for (int i = 0; i < n; ++i) {
          std::size_t k = select(on_send(c, i), on_send(d, i), on_timeout(std::chrono::microseconds((i * 7 + s) % 30)));
          if (k < 2) sent += i;
        }
      });
    }
    for (int r = 0; r < 2; ++r) {
      receivers.go([&, c, d, r] {
        auto take = [&](std::optional<int> v) { got += *v; };
        for (int i = 0; !over; ++i) {
          select(on_recv(d, take), on_recv(c, take), on_timeout(std::chrono::microseconds((i * 11 + r) % 30)));
        }
      });
    }
    senders.wait();
    over = true;
    receivers.wait();
    CHECK(sent == got);
  });
}

TEST_CASE("select: two selects meet each other") {
  weft::run([] {
    const int n = fewer(5000);
    chan<int> a, b;
    std::atomic<long> sent{0}, got{0};
    weft::wait_group w;
    // Each party sends on one channel and receives on the other, whichever is possible first.
    auto party = [&](const chan<int>& to, const chan<int>& from) {
      for (int i = 0; i < n; ++i) {
        select(on_send(to, i, [&] { sent += i; }), on_recv(from, [&](std::optional<int> v) { got += *v; }));
      }
    };
    w.go([&] { party(a, b); });
    w.go([&] { party(b, a); });
    w.wait();
    CHECK(sent == got);
  });
}

TEST_CASE("select: an exception that leaves a handler leaves select, and the operation was done") {
  weft::run([] {
    chan<int> c{1};
    CHECK_THROWS_AS(select(on_send(c, 1, [] { throw std::out_of_range("x"); })), std::out_of_range);
    CHECK(c.size() == 1);
    CHECK_THROWS_AS(select(on_recv(c, [](std::optional<int>) { throw 5; })), int);
    CHECK(c.size() == 0);
    CHECK_THROWS_AS(select(on_recv(c), on_default([] { throw 6; })), int);
    CHECK_THROWS_AS(select(on_recv(c), on_timeout(1ms, [] { throw 7; })), int);
  });
}

TEST_CASE("select: a handler may use the same channels, and select again") {
  weft::run([] {
    chan<int> c{1};
    c.send(1);
    std::size_t inner = 99;
    select(on_recv(c, [&](std::optional<int> v) {
      inner = select(on_recv(c), on_send(c, *v + 1), on_default());
      c.recv();
      c.close();
    }));
    CHECK(inner == 1);
    CHECK_THROWS_AS(c.close(), weft::channel_closed);
  });
}

TEST_CASE("select: a list of cases made at run time") {
  weft::run([] {
    std::vector<chan<int>> c;
    std::vector<std::optional<int>> out(100);
    for (int i = 0; i < 100; ++i) c.emplace_back();
    std::vector<weft::select_case> cases;
    for (std::size_t i = 0; i < 100; ++i) cases.push_back(on_recv(c[i], out[i]));
    for (std::size_t i = 0; i < 100; ++i) {
      weft::go([=] { c[i].send(static_cast<int>(i)); });
    }
    std::vector<int> times(100, 0);
    for (int n = 0; n < 100; ++n) {
      std::size_t k = select(cases);
      ++times[k];
      CHECK(out[k] == static_cast<int>(k));
    }
    CHECK(times == std::vector<int>(100, 1));

    cases.push_back(on_default());
    CHECK(select(cases) == 100);
    std::vector<weft::select_case> with_limit;
    with_limit.push_back(on_recv(c[0]));
    with_limit.push_back(on_timeout(1ms));
    CHECK(select(with_limit) == 1);
    CHECK(select(std::move(with_limit)) == 1);
  });
}

TEST_CASE("select: an array of cases, or a part of a list") {
  weft::run([] {
    chan<int> a{1}, b{1};
    std::array<weft::select_case, 2> both{on_recv(a), on_recv(b)};
    b.send(1);
    CHECK(select(both) == 1);
    weft::select_case bare[] = {on_recv(a), on_recv(b), on_default()};
    CHECK(select(bare) == 2);
    a.send(1);
    CHECK(select(std::span(both).first(1)) == 0);
    a.send(1);
    CHECK(select(std::span<const weft::select_case>(both)) == 0);
  });
}

TEST_CASE("select_case: an lvalue is copied to be owned, and for each time that it is sent") {
  struct counted {
    explicit counted(int* n) : copies(n) {}
    counted(const counted& o) noexcept : copies(o.copies) { ++*copies; }
    counted(counted&&) noexcept = default;
    int* copies;
  };
  weft::run([] {
    int copies = 0;
    chan<counted> c{2};
    std::vector<weft::select_case> cases;
    {
      counted value(&copies);
      cases.push_back(on_send(c, value));
    }
    CHECK(copies == 1);
    CHECK(select(cases) == 0);
    CHECK(select(cases) == 0);
    CHECK(copies == 3);
    cases.push_back(on_default());
    for (int i = 0; i < 10; ++i) CHECK(select(cases) == 1);
    CHECK(copies == 3);
    c.recv();
    CHECK(select(cases) == 0);
    CHECK(copies == 4);
  });
}

static_assert(!std::is_convertible_v<int, weft::select_case> && !std::is_constructible_v<weft::select_case, chan<int>>);
static_assert(std::is_convertible_v<decltype(weft::on_default()), weft::select_case> &&
              std::is_convertible_v<weft::select_case&, weft::select_case>);

TEST_CASE("select_case: a moved-from one is never ready") {
  chan<int> c(1);
  c.send(1);
  std::optional<int> got;
  std::vector<weft::select_case> cases{weft::on_recv(c), weft::on_recv(c, got), weft::on_timeout(1ms)};
  auto moved = std::move(cases[0]);
  CHECK(weft::select(cases) == 1);
  CHECK(got == 1);
  CHECK(weft::select(cases) == 2);
}

TEST_CASE("select: a handler may change the list that it is in") {
  weft::run([] {
    chan<int> c{1};
    int ran = 0;
    std::vector<weft::select_case> cases;
    auto own = std::make_shared<int>(7);
    cases.push_back(on_recv(c, [&cases, &ran, own] {
      cases.clear();
      ran = *own;
    }));
    std::weak_ptr<int> kept = std::exchange(own, nullptr);
    c.send(1);
    CHECK(select(cases) == 0);
    CHECK(ran == 7);
    CHECK(cases.empty());
    CHECK(kept.expired());

    cases.push_back(on_recv(c, [&] {
      for (int i = 0; i < 100; ++i) cases.push_back(on_recv(c));
      ran = 8;
    }));
    c.send(2);
    CHECK(select(cases) == 0);
    CHECK(ran == 8);
    CHECK(cases.size() == 101);

    const std::vector<weft::select_case>& unchanged = cases;
    c.close();
    CHECK(select(unchanged) < 101);
  });
}

TEST_CASE("select_case: owns its value; an lvalue is copied each time, an rvalue sent once") {
  weft::run([] {
    chan<std::string> c{4};
    std::vector<weft::select_case> cases;
    {
      std::string text(40, 'a');
      cases.push_back(on_send(c, text));
      CHECK(text.size() == 40);
    }
    CHECK(select(cases) == 0);
    CHECK(select(cases) == 0);
    CHECK(c.recv() == std::string(40, 'a'));
    CHECK(c.recv() == std::string(40, 'a'));

    chan<std::unique_ptr<int>> m{4};
    std::vector<weft::select_case> moving;
    moving.push_back(on_send(m, std::make_unique<int>(7)));
    moving.push_back(on_default());
    CHECK(select(moving) == 0);
    CHECK(**m.recv() == 7);

    chan<int> n{2};
    int ran = 0;
    std::vector<weft::select_case> mixed;
    mixed.push_back(on_send(n, 3, [&] { ++ran; }));
    mixed.push_back(on_recv(n, [&](std::optional<int> v) { ran += *v * 10; }));
    CHECK(select(mixed) == 0);
    CHECK(ran == 1);
    weft::select_case moved = std::move(mixed[1]);
    mixed.clear();
    mixed.push_back(std::move(moved));
    CHECK(select(mixed) == 0);
    CHECK(ran == 31);
  });
}

TEST_CASE("select: from a thread that weft did not start") {
  weft::run([] {
    chan<int> a, b, results{8};
    std::thread t([=] {
      results.send(select(on_recv(a), on_default()) == 1);
      results.send(select(on_recv(a), on_timeout(2ms)) == 1);
      int sum = 0;
      auto add = [&](std::optional<int> v) { sum += *v; };
      for (int i = 0; i < 100; ++i) select(on_recv(a, add), on_recv(b, add));
      results.send(sum);
      select(on_send(a, 5), on_send(b, 5));
    });
    CHECK(results.recv() == 1);
    CHECK(results.recv() == 1);
    for (int i = 0; i < 100; ++i) select(on_send(a, 1), on_send(b, 2));
    int sum = *results.recv();
    CHECK(sum > 100);
    CHECK(sum < 200);
    int got = 0;
    select(on_recv(a, [&](std::optional<int> v) { got = *v; }), on_recv(b, [&](std::optional<int> v) { got = *v; }));
    CHECK(got == 5);
    weft::blocking([&] { t.join(); });
  });
}

TEST_CASE("select: between plain threads, without a runtime") {
  chan<int> a, b{2}, done;
  constexpr int n = 3000;
  std::atomic<long> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([=] {
      for (int i = 1; i <= n; ++i) select(on_send(a, i), on_send(b, i));
    });
    threads.emplace_back([=, &sum] {
      auto add = [&](std::optional<int> v) { sum += *v; };
      for (int i = 0; i < n;) {
        if (select(on_recv(b, add), on_recv(a, add), on_timeout(1ms)) < 2) ++i;
      }
    });
  }
  for (auto& t : threads) t.join();
  CHECK(sum == 2L * n * (n + 1) / 2);
}

// A plain thread that waits for a timer looks now and then whether the run() that drives the timer is over. Here values
// come less often than that, and the thread must keep its place in the queue.
TEST_CASE("select: a plain thread keeps its place while it waits for a timer, too") {
  weft::run([] {
    chan<int> work, there, by_thread, by_goroutine;
    weft::timer far{1h}, soon{1h};
    std::thread t([=] {
      auto got = [=](std::optional<int> v) { by_thread.send(*v); };
      there.send(0);
      select(on_recv(work, got), on_recv(far.channel()));
      there.send(0);
      select(on_send(work, 2), on_recv(far.channel()));
      there.send(0);
      if (soon.channel().recv()) by_thread.send(3);
    });
    auto others_time = [] { weft::sleep(60ms * slowdown); };
    there.recv();
    weft::sleep(a_while);  // now the thread waits
    weft::go([=] {
      if (auto v = work.recv()) by_goroutine.send(*v);
    });
    others_time();
    work.send(1);
    CHECK(select(on_recv(by_thread), on_recv(by_goroutine)) == 0);
    work.send(0);
    by_goroutine.recv();

    there.recv();
    weft::sleep(a_while);
    weft::go([=] { work.send(0); });
    others_time();
    CHECK(work.recv() == 2);
    CHECK(work.recv() == 0);

    there.recv();
    soon.reset(60ms * slowdown);
    weft::sleep(a_while);
    weft::go([=] {
      if (soon.channel().recv()) by_goroutine.send(3);
    });
    CHECK(select(on_recv(by_thread), on_recv(by_goroutine)) == 0);
    weft::blocking([&] { t.join(); });
  });
}

TEST_CASE("select: with timers' channels, and a timer that is stopped while a select waits for it") {
  weft::run([] {
    chan<int> never;
    CHECK(select(on_recv(never), on_recv(weft::after(2ms))) == 1);
    weft::timer t{1h}, soon{1ms};
    CHECK(select(on_recv(t.channel()), on_recv(soon.channel())) == 1);
    weft::ticker tick{1ms};
    for (int i = 0; i < 3; ++i) CHECK(select(on_recv(t.channel()), on_recv(tick.channel())) == 1);
    auto waits = weft::spawn([&] { return select(on_recv(t.channel()), on_recv(never)); });
    weft::sleep(a_while);
    CHECK(t.stop());
    t.reset(1ms);
    CHECK(waits.join() == 0);
  });
}

TEST_CASE("select: random parties on random channels keep the sum") {
  weft::run([] {
    constexpr std::size_t channels = 6, parties = 8;
    const int n = fewer(1500);
    std::vector<chan<int>> c;
    for (std::size_t i = 0; i < channels; ++i) c.emplace_back(i % 3);
    std::atomic<long> sent{0}, got{0};
    weft::wait_group w;
    for (std::size_t p = 0; p < parties; ++p) {
      w.go([&, p] {
        for (int i = 0; i < n; ++i) {
          auto at = [&](std::size_t k) -> chan<int>& {
            return c[(p * 7 + static_cast<std::size_t>(i) * 5 + k * k) % channels];
          };
          auto add = [&](std::optional<int> v) { got += *v; };
          select(on_send(at(0), i, [&] { sent += i; }), on_recv(at(1), add), on_recv(at(2), add),
                 on_send(at(3), 2 * i, [&] { sent += 2 * i; }), on_timeout(100us));
        }
      });
    }
    w.wait();
    for (auto& k : c) {
      int v;
      while (k.try_recv(v) == recv_result::value) got += v;
    }
    CHECK(sent == got);
  });
}

TEST_CASE("select: a handler that takes std::any gets the value, not an optional") {
  weft::run([] {
    chan<std::any> c(2);
    c.send(5);
    c.send(6);
    select(on_recv(c, [](std::any v) { CHECK(std::any_cast<int>(&v) != nullptr); }));
    select(on_recv(c, [](std::optional<std::any> v) { CHECK((v && std::any_cast<int>(&*v) != nullptr)); }));
    c.close();
    CHECK_THROWS_AS(select(on_recv(c, [](std::any) {})), weft::channel_closed);
    select(on_recv(c, [](std::optional<std::any> v) { CHECK(!v); }));
  });
}

TEST_CASE("select: a case that was named stays whole when it is put into a list") {
  weft::run([] {
    chan<int> c(2);
    c.send(1);
    c.send(2);
    int sum = 0;
    std::function<void(int)> add = [&](int v) { sum += v; };
    auto named = on_recv(weft::recv_chan<int>(c), add);
    std::vector<weft::select_case> one, other;
    one.push_back(named);
    other.push_back(named);
    select(one);
    select(other);
    CHECK(sum == 3);
  });
}

namespace {
struct animal {
  virtual ~animal() = default;
};
struct dog : animal {};
}  // namespace

TEST_CASE("select: a value of another type is whole if its case is not chosen, and in the channel if it is") {
  weft::run([] {
    chan<std::unique_ptr<animal>> animals(1);
    chan<std::optional<std::string>> words(1);
    const std::string text(100, 'x');
    animals.send(nullptr);
    words.send(std::nullopt);
    auto rex = std::make_unique<dog>();
    std::string word = text;
    CHECK(select(on_send(animals, std::move(rex)), on_send(words, std::move(word)), on_default()) == 2);
    REQUIRE(rex);
    CHECK(word == text);
    CHECK(!animals.try_send(std::move(rex)));
    CHECK(!words.send_for(std::move(word), 1ms));
    REQUIRE(rex);
    CHECK(word == text);

    CHECK(animals.recv());
    CHECK(words.recv());
    select(on_send(animals, std::move(rex)));
    CHECK(words.try_send(std::move(word)));
    CHECK(!rex);
    CHECK(dynamic_cast<dog*>(animals.recv()->get()));
    CHECK(**words.recv() == text);

    // To a receiver that waits, by a select that waits, and from a list.
    chan<std::unique_ptr<animal>> c;
    auto receiver = weft::spawn([c] {
      bool dogs = true;
      for (int i = 0; i < 3; ++i) dogs = dogs && dynamic_cast<dog*>(c.recv()->get());
      return dogs;
    });
    weft::yield();
    CHECK(c.send_for(std::make_unique<dog>(), 5s));
    select(on_send(c, std::make_unique<dog>()), on_timeout(5s));
    std::vector<weft::select_case> list;
    list.push_back(on_send(c, std::make_unique<dog>()));
    select(list);
    CHECK(receiver.join());
  });
}

TEST_CASE("select: into a value that cannot be assigned") {
  struct fixed {
    const int value;
  };
  weft::run([] {
    chan<fixed> c(2);
    c.send({1});
    c.send({2});
    std::optional<fixed> out;
    select(on_recv(c, out));
    select(on_recv(c, out));
    CHECK(out->value == 2);
    c.close();
    select(on_recv(c, out));
    CHECK(!out);
  });
}

TEST_CASE("select_case: a list of them can be written down and copied") {
  weft::run([] {
    chan<int> a(1), b(1);
    int from_a = 0, from_b = 0;
    std::vector<weft::select_case> list{on_recv(a, [&](int v) { from_a = v; }), on_recv(b, [&](int v) { from_b = v; })};
    const auto copy = list;
    b.send(2);
    CHECK(select(copy) == 1);
    a.send(1);
    CHECK(select(list) == 0);
    CHECK(from_a == 1);
    CHECK(from_b == 2);
  });
}
