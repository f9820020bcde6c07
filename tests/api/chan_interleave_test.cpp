// Channels and select through their interleavings. chan.cpp and select.cpp are compiled into this test. In place of the
// scheduler, `park` and `ready` sleep and wake by the modelled futex. The commit step of a park runs on a thread of its
// own, as the goroutine may go on while the step still runs. So does a time limit, which may pass at any moment.
//
// The test sees who is served, and when, where values are moved, which is under the channel's lock. It checks:
//   - A value leaves its sender once, and comes to one receiver or stays in the buffer.
//   - Of the cases of a select, one is done: the one that it returns.
//   - Waiters are served in the order in which they came, and nobody who came later is served before them.
// A lost wake-up shows as a deadlock.
//
// Kills these mutants (tests/mutants): select-*, and chan-* except for those that go/chan and go/select kill.

#include "api/src/chan_core.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/interleave.hpp"
#include "weft/detail/time.hpp"
#include "weft/select.hpp"

#include <array>
#include <deque>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace weft::rt;
using namespace weft::detail;
using weft::test::interleaving;
using weft::test::seeds;

namespace {

struct goroutine : G {
  goroutine() { m.p.store(&p, relaxed); }

  P p{0};
  M m;
  int sleeps = 0, wakes = 0;
  // Of the current call:
  int place = 0;  // its number among all waits, in the order in which they began; 0: it has not waited
  wait_ticket ticket = no_ticket;
  int served = 0;  // how many of its cases

  // True if the goroutine waits for somebody to end its wait. Called by the holder of the lock of one of its channels.
  bool can_be_claimed() const {
    if (place == 0 || served != 0) return false;
    return ticket == no_ticket ? wakes != sleeps : wake.load(relaxed) == ticket << 1;
  }
};

// A send or a receive, or a case of a select that is one.
struct operation {
  int value;
  chan_core* c;
  bool send;
  goroutine* by;
  bool over = false;
  bool done = false;
};

class world;
world* the_world = nullptr;

class world {
 public:
  world(std::uint64_t seed, std::size_t capacity) : threads(seed) {
    the_world = this;
    for (chan_core*& c : channels) c = chan_make({sizeof(int), alignof(int), move, nullptr}, capacity);
  }
  ~world() {
    for (chan_core* c : channels) chan_release(c);
  }

  template <class F>
  void go(F f) {
    goroutines_.push_back(std::make_unique<goroutine>());
    goroutine& g = *goroutines_.back();
    g.m.worker = true;
    g.m.depth.store(0, relaxed);
    g.m.g = &g;
    g.m.random = random_source(threads.random().next());
    threads.add(std::move(f));
  }

  // --- for goroutines

  struct one_case {
    int channel;
    bool send;
  };
  static one_case send_to(int channel) { return {channel, true}; }
  static one_case recv_from(int channel) { return {channel, false}; }

  chan_status send(int channel, std::int64_t timeout = wait_forever) {
    return call({send_to(channel)}, timeout,
                [&](select_op* op) {
                  return select_outcome{0, chan_send(op->chan, op->value, timeout)};
                })
        .status;
  }
  chan_status recv(int channel, std::int64_t timeout = wait_forever) {
    return call({recv_from(channel)}, timeout,
                [&](select_op* op) {
                  return select_outcome{0, chan_recv(op->chan, op->value, timeout)};
                })
        .status;
  }
  select_outcome select(std::initializer_list<one_case> cases, std::int64_t timeout = wait_forever) {
    return call(cases, timeout, [&](select_op* ops) { return unpack(chan_select(ops, cases.size(), timeout)); });
  }
  // As select, but the values that it sends are made only when it needs them.
  select_outcome select_copying(std::initializer_list<one_case> cases, std::int64_t timeout = wait_forever) {
    return call(cases, timeout, [&](select_op* ops) {
      const std::span all(ops, cases.size());
      std::array<void*, 4> values{};
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].send) values[i] = std::exchange(all[i].value, nullptr);
      }
      return select_making_values(all, timeout, [&](std::size_t i) {
        interleave_point();
        return values[i];
      });
    });
  }
  void close(int channel) {
    closing_[channel] = true;
    chan_close(channels[channel]);
  }
  bool waits(std::size_t who) const { return goroutines_[who]->sleeps > 0; }
  // A time limit that passes at any moment, or has passed at once.
  std::int64_t some_time() { return threads.random().below(4) == 0 ? dont_wait : 1; }

  // Returns "", or what went wrong.
  std::string run() {
    std::string wrong = threads.run();
    if (!wrong.empty()) return wrong;
    std::size_t sent = 0, buffered = 0;
    for (const operation& o : operations_) sent += o.send && o.done;
    for (chan_core* c : channels) {
      buffered += chan_size(c);
      if (!c->senders.looks_empty() || !c->receivers.looks_empty()) return "somebody is left in a queue";
    }
    return sent == received + buffered ? "" : "a value is lost";
  }

  // --- for what replaces the scheduler

  goroutine& present() { return *goroutines_[interleaving::current()]; }

  void comes_to_wait(goroutine& g, wait_ticket ticket) {
    g.ticket = ticket;
    g.place = ++places_;
    ++g.sleeps;
  }

  interleaving threads;
  std::array<chan_core*, 2> channels{};
  std::size_t received = 0;

 private:
  template <class F>
  select_outcome call(std::initializer_list<one_case> cases, std::int64_t timeout, F f) {
    goroutine& self = present();
    self.place = self.served = 0;
    std::size_t first = operations_.size();
    std::array<select_op, 4> ops;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      one_case k = cases.begin()[i];
      operations_.push_back({k.send ? ++values_ : 0, channels[k.channel], k.send, &self});
      ops[i] = {operations_.back().c, &operations_.back().value, k.send};
    }
    select_outcome r = f(ops.data());
    if (r.status == chan_status::would_block) r.index = select_outcome::none;
    interleaving::check(r.status != chan_status::would_block || timeout != wait_forever, "it did not wait");
    for (std::size_t i = 0; i < cases.size(); ++i) {
      operation& o = operations_[first + i];
      o.over = true;
      bool done = i == r.index && r.status == chan_status::done;
      interleaving::check(o.done == done, done ? "done, but no value was moved" : "a value was moved, but not done");
      interleaving::check(i != r.index || done || closing_[cases.begin()[i].channel], "closed, but nobody closed it");
    }
    return r;
  }

  operation* find(void* value) {
    for (operation& o : operations_) {
      if (&o.value == value) return &o;
    }
    return nullptr;
  }

  // Called under the lock of o's channel.
  void serve(operation& o) {
    interleaving::check(!o.over, "served after its end");
    interleaving::check(!o.done, "served twice");
    interleaving::check(o.by->served++ == 0, "two cases of a select are done");
    interleaving::check(!o.send || !o.c->closed.load(relaxed), "sent after the close");
    o.done = true;
    int& last = last_place_[o.c == channels[1]][o.send];
    if (o.by->place != 0) {
      interleaving::check(o.by->place > last, "served before one who has waited for longer");
      last = o.by->place;
      return;
    }
    // By index: can_be_claimed loads an atomic, and there another goroutine may add to operations_.
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const operation& other = operations_[i];
      bool waits = !other.over && other.c == o.c && other.send == o.send && other.by->can_be_claimed();
      interleaving::check(!waits, "served before one who waits");
    }
  }

  static void move(void* to, void* from) noexcept {
    world& w = *the_world;
    operation* sender = w.find(from);
    if (sender) w.serve(*sender);
    *static_cast<int*>(to) = *static_cast<int*>(from);
    interleave_point();
    if (operation* receiver = w.find(to)) {
      w.serve(*receiver);
      interleaving::check(!sender || chan_size(receiver->c) == 0, "received before what is in the buffer");
      ++w.received;
      for (const operation& o : w.operations_) {
        bool twice = &o != receiver && !o.send && o.done && o.value == receiver->value;
        interleaving::check(!twice, "a value is received twice");
      }
    }
  }

  std::vector<std::unique_ptr<goroutine>> goroutines_;
  std::deque<operation> operations_;  // a deque: elements stay where they are
  int values_ = 0, places_ = 0;
  std::array<bool, 2> closing_{};
  int last_place_[2][2] = {};
};

}  // namespace

// --- in place of sched/ and of api/src/time.cpp

namespace weft::rt {

thread_state* this_thread_or_null() noexcept { return &the_world->present().m; }
thread_state* begin_foreign_thread() noexcept { return nullptr; }
M* enter_slow(M* m) noexcept { return m; }
void plain_thread_comes() noexcept {}

namespace {

M* sleep(goroutine& self, after_switch commit, void* arg) {
  if (commit) the_world->threads.add([=, &self] { commit(&self, arg); });
  self.thread_note.sleep();
  self.thread_note.clear();
  return &self.m;
}

}  // namespace

M* park(M*, after_switch commit, void* arg, wait_reason why) noexcept {
  goroutine& self = the_world->present();
  interleave_point();
  the_world->comes_to_wait(self, why == wait_reason::select ? self.wake.load(relaxed) >> 1 : no_ticket);
  return sleep(self, commit, arg);
}

M* park_until(M*, wait_ticket ticket, after_switch commit, void* arg, wait_reason, nanos, bool* timed_out) {
  static char limit;
  goroutine& self = the_world->present();
  interleave_point();
  the_world->comes_to_wait(self, ticket);
  self.wake_value = nullptr;
  the_world->threads.add([ticket, g = &self] {
    for (std::uint32_t n = the_world->threads.random().below(8); n > 0; --n) interleave_point();
    if (!g->claim(ticket)) return;
    g->wake_value = &limit;
    ready(nullptr, g);
  });
  M* m = sleep(self, commit, arg);
  *timed_out = self.wake_value == &limit;
  return m;
}

M* park_until_run_ends(M* m, std::uint64_t, wait_ticket ticket, after_switch commit, void* arg, wait_reason why,
                       nanos deadline, bool* timed_out) {
  return park_until(m, ticket, commit, arg, why, deadline, timed_out);
}

void ready_without_prefetch(M*, G* g, run_next) noexcept {
  auto& woken = *static_cast<goroutine*>(g);
  interleaving::check(woken.wakes < woken.sleeps, "woken although it does not sleep");
  ++woken.wakes;
  g->thread_note.wakeup();
}

}  // namespace weft::rt

namespace weft::detail {

void sleep_ns(std::int64_t) {}
void timer_catch_up(chan_core*) noexcept {}
std::uint64_t timer_begin_wait(chan_core*) { return 0; }
void timer_channel_gone(chan_core*) noexcept {}

}  // namespace weft::detail

namespace {

constexpr auto send_to = world::send_to;
constexpr auto recv_from = world::recv_from;

template <class F>
void in_every_order(F scenario) {
  for (std::uint64_t seed = 0; seed < seeds(5000); ++seed) {
    world w(seed, seed % 2);
    scenario(w);
    INFO("seed " << seed);
    REQUIRE(w.run() == "");
  }
}

// Closes both channels when no senders are left.
void close_after(world& w, const std::shared_ptr<int>& senders) {
  w.go([&w, senders] {
    interleaving::wait_until([&] { return *senders == 0; });
    w.close(0);
    w.close(1);
  });
}

template <class F>
void times(int n, F f) {
  for (int i = 0; i < n; ++i) f();
}

}  // namespace

TEST_CASE("channels: senders and receivers, some in a hurry, and a close") {
  in_every_order([](world& w) {
    auto senders = std::make_shared<int>(3);
    w.go([&w, senders] {
      times(3, [&] { w.send(0); });
      --*senders;
    });
    w.go([&w, senders] {
      times(3, [&] { w.send(0, w.some_time()); });
      --*senders;
    });
    w.go([&w, senders] {
      times(2, [&] { w.send(1); });
      --*senders;
    });
    close_after(w, senders);
    w.go([&w] {
      while (w.recv(0) == chan_status::done) {}
    });
    w.go([&w] {
      while (w.recv(0, w.some_time()) != chan_status::closed) {}
    });
    w.go([&w] {
      while (w.select({recv_from(0), recv_from(1)}).status == chan_status::done) {}
    });
    w.go([&w] {
      while (w.recv(1) == chan_status::done) {}
    });
  });
}

TEST_CASE("channels: where somebody waits until the close, nobody is told that nothing is ready") {
  in_every_order([](world& w) {
    bool send = w.threads.random().below(2) == 0;
    w.go([&w, send] {
      if (send) {
        (void)w.recv(0);
      } else {
        while (w.send(0) == chan_status::done) {}
      }
    });
    w.go([&w] {
      interleaving::wait_until([&w] { return w.waits(0); });
      w.close(0);
    });
    w.go([&w, send] {
      interleaving::wait_until([&w] { return w.waits(0); });
      chan_status s = send ? w.send(0, dont_wait) : w.recv(0, dont_wait);
      interleaving::check(s != chan_status::would_block, "told that nothing is ready");
    });
  });
}

TEST_CASE("channels: while a value is taken and a sender that waits is let in, the buffer is never empty") {
  for (std::uint64_t seed = 0; seed < seeds(5000); ++seed) {
    world w(seed, 1);
    w.go([&w] { times(2, [&] { w.send(0); }); });
    for (std::int64_t limit : {wait_forever, dont_wait}) {
      w.go([&w, limit] {
        interleaving::wait_until([&w] { return w.waits(0); });
        interleaving::check(w.recv(0, limit) == chan_status::done, "told that nothing is ready");
      });
    }
    INFO("seed " << seed);
    REQUIRE(w.run() == "");
  }
}

// Words are not moved by a function. So this test does not see who is served, only which values come out.
TEST_CASE("channels: words, senders and receivers in a hurry, and a close") {
  for (std::uint64_t seed = 0; seed < seeds(5000); ++seed) {
    world w(seed, 0);
    chan_core* c = chan_make(element_of<int>, seed % 3);
    std::array<int, 3> sent{};
    std::array<std::array<int, 3>, 2> last{};
    int received = 0;
    for (int sender = 0; sender < 3; ++sender) {
      w.go([&, sender] {
        for (;;) {
          int value = sender + 10 * sent[sender];
          chan_status s = chan_send(c, &value, sender == 0 ? w.some_time() : wait_forever);
          if (s == chan_status::closed) return;
          sent[sender] += s == chan_status::done;
        }
      });
    }
    for (auto& before : last) {
      w.go([&] {
        bool hurries = &before == &last[0];
        int value;
        for (chan_status s;
             (s = chan_recv(c, &value, hurries ? w.some_time() : wait_forever)) != chan_status::closed;) {
          if (s == chan_status::would_block) continue;
          int number = value / 10 + 1;
          interleaving::check(number > before[value % 10], "received twice, or before what was sent before");
          before[value % 10] = number;
          ++received;
        }
      });
    }
    w.go([&, n = w.threads.random().below(8)] {
      interleaving::wait_until([&] { return received >= static_cast<int>(n); });
      chan_close(c);
    });
    INFO("seed " << seed);
    REQUIRE(w.run() == "");
    REQUIRE(chan_size(c) == 0);
    REQUIRE(received == sent[0] + sent[1] + sent[2]);
    chan_release(c);
  }
}

TEST_CASE("channels: words meet selects that wait for two of them") {
  for (std::uint64_t seed = 0; seed < seeds(5000); ++seed) {
    world w(seed, 0);
    std::array<chan_core*, 2> c{chan_make(element_of<int>, 0), chan_make(element_of<int>, seed % 2)};
    std::array<int, 4> times_received{};
    for (int i : {0, 1}) {
      w.go([&, i] {
        for (int value : {2 * i, 2 * i + 1}) {
          interleaving::check(chan_send(c[i], &value) == chan_status::done, "it did not wait");
        }
      });
      w.go([&] {
        times(2, [&] {
          int value[2] = {-1, -1};
          std::array<select_op, 2> ops{{{c[0], &value[0], false}, {c[1], &value[1], false}}};
          select_outcome r = unpack(chan_select(ops.data(), 2, wait_forever));
          interleaving::check(r.status == chan_status::done && value[1 - r.index] == -1, "not one of the two");
          ++times_received[value[r.index]];
        });
      });
    }
    INFO("seed " << seed);
    REQUIRE(w.run() == "");
    REQUIRE(times_received == std::array{1, 1, 1, 1});
    for (chan_core* each : c) chan_release(each);
  }
}

// "looks": each goroutine does something, and then looks whether the other one has done so. Stores may be seen late
// (keep_stores), but at least one of the two must see what the other did.
TEST_CASE("channels: what has returned no later look misses") {
  for (std::uint64_t seed = 0; seed < seeds(12000); ++seed) {
    world w(seed, 0);
    w.threads.keep_stores();
    const std::size_t capacity = 1 + seed % 2;
    const std::uint32_t what = w.threads.random().below(3);
    std::array<chan_core*, 2> c{chan_make(element_of<int>, capacity), chan_make(element_of<int>, capacity)};
    std::uint64_t value = 0;
    if (what == 1) {
      for (chan_core* each : c)
        times(static_cast<int>(capacity), [&] { each->push(each->count.load(weft::rt::relaxed), &value); });
    }
    int seen = 0;
    for (int i : {0, 1}) {
      w.go([&, i] {
        int mine = 0;
        chan_status s;
        switch (what) {
          case 0:  // sends a value, then looks for the other's
            (void)chan_send(c[i], &mine);
            s = chan_recv(c[1 - i], &mine, dont_wait);
            break;
          case 1:  // makes room, then looks for the other's
            (void)chan_recv(c[i], &mine);
            s = chan_send(c[1 - i], &mine, dont_wait);
            break;
          default:  // closes, then looks for the other's close
            chan_close(c[i]);
            s = chan_recv(c[1 - i], &mine, dont_wait);
        }
        seen += s != chan_status::would_block;
      });
    }
    INFO("seed " << seed << ", case " << what);
    REQUIRE(w.run() == "");
    REQUIRE(seen > 0);
    for (chan_core* each : c) chan_release(each);
  }
}

TEST_CASE("channels: while words are taken, a sender that waits is let in, and before one who comes later") {
  for (std::uint64_t seed = 0; seed < seeds(5000); ++seed) {
    world w(seed, 0);
    chan_core* c = chan_make(element_of<int>, 1);
    int received = 0;
    w.go([&] {
      for (int value : {1, 2}) {
        interleaving::check(chan_send(c, &value) == chan_status::done, "it did not wait");
      }
    });
    w.go([&] {
      interleaving::wait_until([&] { return w.waits(0); });
      interleaving::check(chan_recv(c, &received) == chan_status::done, "it did not wait");
    });
    w.go([&] {
      interleaving::wait_until([&] { return w.waits(0); });
      int value = 3;
      interleaving::check(chan_send(c, &value, dont_wait) == chan_status::would_block, "before one who waits");
    });
    INFO("seed " << seed);
    REQUIRE(w.run() == "");
    REQUIRE(received == 1);
    REQUIRE(chan_size(c) == 1);
    chan_release(c);
  }
}

TEST_CASE("select: with a default, too, all cases are looked at at once") {
  for (std::uint64_t seed = 0; seed < seeds(5000); ++seed) {
    world w(seed, 1);
    bool ready = false;
    w.go([&] {
      w.send(0);
      ready = true;
      // From here on, one of the two channels has a value at any time.
      w.send(1);
      w.recv(0);
    });
    w.go([&] {
      interleaving::wait_until([&] { return ready; });
      const bool copying = seed % 2 == 1;
      select_outcome r = copying ? w.select_copying({recv_from(1), recv_from(0)}, dont_wait)
                                 : w.select({recv_from(1), recv_from(0)}, dont_wait);
      interleaving::check(r.status == chan_status::done, "told that nothing is ready");
      (void)w.send(0, dont_wait);  // in place of the value that select may have taken from channel 0
    });
    INFO("seed " << seed);
    REQUIRE(w.run() == "");
  }
}

TEST_CASE("select: two wait for the same channels, in opposite order") {
  in_every_order([](world& w) {
    w.go([&w] { times(3, [&] { w.select({recv_from(0), recv_from(1)}); }); });
    w.go([&w] { times(3, [&] { w.select({recv_from(1), recv_from(0)}); }); });
    w.go([&w] { times(3, [&] { w.send(0); }); });
    w.go([&w] { times(3, [&] { w.send(1); }); });
  });
}

TEST_CASE("select: those that send meet those that receive") {
  in_every_order([](world& w) {
    w.go([&w] { times(3, [&] { w.select({send_to(0), send_to(1)}); }); });
    w.go([&w] { times(3, [&] { w.select({send_to(1), send_to(0)}); }); });
    w.go([&w] { times(3, [&] { w.select({recv_from(0), recv_from(1)}); }); });
    w.go([&w] { times(3, [&] { w.select({recv_from(1), recv_from(0)}); }); });
  });
}

TEST_CASE("select: both send and receive on one channel, each with the other") {
  in_every_order([](world& w) {
    w.go([&w] { times(5, [&] { w.select({send_to(0), recv_from(0)}); }); });
    w.go([&w] { times(5, [&] { w.select({recv_from(0), send_to(0)}); }); });
  });
}

TEST_CASE("select: those that send copies meet others, and a close") {
  in_every_order([](world& w) {
    auto senders = std::make_shared<int>(3);
    w.go([&w, senders] {
      times(3, [&] { w.select_copying({send_to(0), send_to(1)}); });
      --*senders;
    });
    w.go([&w, senders] {
      times(3, [&] { w.select_copying({recv_from(1), send_to(0)}, w.some_time()); });
      --*senders;
    });
    w.go([&w, senders] {
      times(2, [&] { w.send(1); });
      --*senders;
    });
    close_after(w, senders);
    w.go([&w] {
      while (w.select({recv_from(0), recv_from(1)}).status == chan_status::done) {}
    });
    w.go([&w] {
      while (w.recv(1, w.some_time()) != chan_status::closed) {}
    });
    w.go([&w] {
      while (w.recv(0) == chan_status::done) {}
    });
  });
}

TEST_CASE("select: one channel in several cases") {
  in_every_order([](world& w) {
    w.go([&w] { times(6, [&] { w.select({recv_from(0), recv_from(1), recv_from(0)}); }); });
    w.go([&w] { times(4, [&] { w.select({send_to(0), send_to(0), send_to(1)}); }); });
    w.go([&w] { times(2, [&] { w.send(0); }); });
  });
}

TEST_CASE("select: a close meets selects that wait, and a sender") {
  in_every_order([](world& w) {
    w.go([&w] {
      while (w.send(0) == chan_status::done) {}
    });
    w.go([&w] {
      while (w.select({send_to(1), send_to(0)}).status == chan_status::done) {}
    });
    w.go([&w] {
      while (w.select({recv_from(0), recv_from(1)}).status == chan_status::done) {}
    });
    w.go([&w] {
      while (w.recv(0) == chan_status::done) {}
    });
    w.go([&w] {
      interleaving::wait_until([&w, n = w.threads.random().below(4)] { return w.received >= n; });
      w.close(0);
    });
  });
}

TEST_CASE("select: time limits meet senders") {
  in_every_order([](world& w) {
    constexpr std::size_t all = 6;
    w.go([&w] {
      while (w.received < all) w.select({recv_from(0), recv_from(1)}, w.some_time());
    });
    w.go([&w] {
      while (w.received < all) w.select({recv_from(1), recv_from(0)}, w.some_time());
    });
    w.go([&w] { times(2, [&] { w.send(0); }); });
    w.go([&w] {
      times(2, [&] {
        while (w.send(1, w.some_time()) != chan_status::done) {}
      });
    });
    w.go([&w] {
      times(2, [&] {
        while (w.select({send_to(1), send_to(0)}, 1).status != chan_status::done) {}
      });
    });
  });
}
