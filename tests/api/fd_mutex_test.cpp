// Many calls use a descriptor while one closes it: each gets its turn or is refused, and exactly one is the last.
#include "api/src/net/fd_mutex.hpp"
#include "runtime/thread.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <memory>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/task.hpp>
#include <weft/time.hpp>

using namespace std::chrono_literals;
using weft::net::entry;
using weft::net::fd_mutex;
using weft::net::leave;
using weft::net::side;

namespace {

struct object {
  fd_mutex mutex;
  std::atomic<int> inside[2]{};
  std::atomic<int> faults{0};
  std::atomic<int> last{0};
  std::atomic<int> entered{0}, refused{0}, refused_waiting{0};

  void count(leave l) {
    if (l == leave::last) ++last;
  }

  void call(side s, bool yields) {
    auto& in = inside[s == side::read ? 0 : 1];
    switch (mutex.lock(s)) {
      case entry::closed_before: ++refused; return;
      case entry::closed_meanwhile:
        ++refused_waiting;
        count(mutex.exit());
        return;
      case entry::inherited: ++faults; break;  // no run() has left a call behind here
      case entry::entered: break;
    }
    ++entered;
    if (last != 0 || ++in != 1) ++faults;  // no call is inside after the last one, and only one at a time
    if (yields) weft::yield();
    --in;
    count(mutex.unlock(s));
  }
};

}  // namespace

TEST_CASE("one at a time, and exactly one is the last") {
  weft::run([] {
    int waited = 0;
    for (int round = 0; round < 300; ++round) {
      object o;
      std::vector<weft::task<void>> calls;
      for (int i = 0; i < 8; ++i) {
        calls.push_back(weft::spawn([&o, i, round] {
          for (int k = 0; k < 20; ++k) {
            if (i == 7 && k == round % 20) {
              if (o.mutex.close(false)) o.count(o.mutex.exit());
            } else if (i == 6) {
              if (o.mutex.enter()) o.count(o.mutex.exit());
            } else {
              o.call(i % 2 ? side::read : side::write, (k + i + round) % 3 == 0);
            }
          }
        }));
      }
      for (auto& c : calls) c.join();
      waited += o.refused_waiting;
      REQUIRE(o.faults == 0);
      REQUIRE(o.last == 1);
      REQUIRE(!o.mutex.close(false));
      REQUIRE(!o.mutex.enter());
    }
    CHECK(waited > 0);  // the interesting case, a close while a call waits, did happen
  });
}

TEST_CASE("first come, first served") {
  weft::run([] {
    object o;
    REQUIRE(o.mutex.lock(side::read) == entry::entered);
    std::vector<int> order;
    std::vector<weft::task<void>> calls;
    std::atomic<int> begun{0};
    for (int i = 0; i < 10; ++i) {
      calls.push_back(weft::spawn([&, i] {
        ++begun;
        (void)o.mutex.lock(side::read);
        order.push_back(i);
        o.count(o.mutex.unlock(side::read));
      }));
      while (begun <= i) weft::yield();
      weft::sleep(2ms);
    }
    o.count(o.mutex.unlock(side::read));
    for (auto& c : calls) c.join();
    REQUIRE(order.size() == 10);
    for (int i = 0; i < 10; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
    CHECK(o.last == 0);
  });
}

TEST_CASE("what a run() left behind is inherited, and does not keep it open") {
  for (bool inherit : {true, false}) {
    object o;
    weft::run([&] {
      for (side s : {side::read, side::write}) {
        weft::go([&, s] {
          (void)o.mutex.lock(s);
          o.mutex.go_away(s, weft::rt::this_thread()->g);
          weft::sleep(1h);
        });
        weft::sleep(5ms);
        weft::go([&, s] { (void)o.mutex.lock(s); });
      }
      weft::sleep(5ms);
    });
    weft::run([&] {
      for (side s : {side::read, side::write}) {
        if (!inherit) continue;
        CHECK(o.mutex.lock(s) == entry::inherited);
        auto next = weft::spawn([&] { return o.mutex.lock(s); });
        weft::sleep(1ms);
        o.count(o.mutex.unlock(s));
        CHECK(next.join() == entry::entered);
        o.count(o.mutex.unlock(s));
      }
      CHECK(o.last == 0);
      CHECK(o.mutex.close(false));
      o.count(o.mutex.exit());
      CHECK(o.last == 1);
    });
  }
}
