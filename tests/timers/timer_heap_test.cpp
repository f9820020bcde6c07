// The timer heaps, compared with a model that is too simple to be wrong; and with real threads, under ThreadSanitizer.
// timer_heap_interleave_test.cpp drives the same code through its interleavings.
//
// Kills these mutants (tests/mutants): timers-later-not-moved, timers-grid-drifts, timers-add-not-earliest,
// timers-no-reference, timers-grow-for-stopped, timers-change-waits-for-the-lock,
// timers-stop-waits-for-the-lock.

#include "timers/timer_heap.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

using namespace weft::rt;

namespace {

struct fired {
  std::size_t timer;
  std::uint64_t seq;
  nanos due;
  bool operator==(const fired&) const = default;
};

std::vector<fired> log_of_fired;

struct numbered : timer {
  std::size_t number = 0;
  static void fire(timer* self, std::uint64_t seq, nanos due) noexcept {
    log_of_fired.push_back({static_cast<numbered*>(self)->number, seq, due});
  }
};

int alive = 0;
struct counted_timer : numbered {
  counted_timer() {
    ++alive;
    dispose = [](timer* t) noexcept { delete static_cast<counted_timer*>(t); };
  }
  ~counted_timer() { --alive; }
};

struct armed_timer {
  nanos when;
  nanos period;
  std::uint64_t seq;
};

// Heaps, timers, and what each timer should do.
class model {
 public:
  model(unsigned seed, std::size_t timers, bool periodic) : random_(seed), periodic_(periodic) {
    for (std::size_t i = 0; i < timers; ++i) {
      timers_.push_back(new counted_timer);
      timers_.back()->number = i;
    }
  }
  ~model() {
    for (auto& h : heaps_) h.clear();
    for (counted_timer* t : timers_) t->release();
  }

  void step() {
    std::size_t i = below(timers_.size());
    switch (below(10)) {
      case 0:
      case 1:
      case 2: change(i, heaps_[below(heaps_.size())]); break;
      case 3: add(i, heaps_[below(heaps_.size())]); break;
      case 4: remove(i); break;
      case 5:
      case 6: look(heaps_[below(heaps_.size())]); break;
      case 7: now_ += static_cast<nanos>(below(60)); break;
      case 8:
        if (below(8) == 0) move_all();
        tidy(heaps_[below(heaps_.size())]);
        break;
      default: replace(i);
    }
    check_hints();
  }

  void finish() {
    // Lets the last one-shot timers fire. Periodic ones would go on forever.
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      if (armed_.count(i) && armed_[i].period > 0) remove(i);
    }
    now_ += 10000;
    for (auto& h : heaps_) look(h);
    CHECK(armed_.empty());
    for (auto& h : heaps_) CHECK(h.wake_when() == 0);
  }

 private:
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  nanos some_time() { return now_ - 20 + static_cast<nanos>(below(200)); }
  nanos some_period() { return periodic_ && below(3) == 0 ? static_cast<nanos>(below(40)) + 1 : 0; }

  void change(std::size_t i, timer_heap& here) {
    nanos when = some_time(), period = some_period();
    counted_timer* t = timers_[i];
    bool was_armed = armed_.count(i) != 0;
    timer_heap& there = is_in_heap(t) ? *t->heap : here;
    nanos woke_at = there.wake_when();
    change_result r = change_timer(here, t, {when, period, numbered::fire, ++seq_});
    CHECK(r.was_pending == was_armed);
    CHECK(t->heap == &there);
    told_in_time(r.earliest, woke_at, when);
    armed_[i] = {std::max<nanos>(when, 1), period, seq_};
  }

  void add(std::size_t i, timer_heap& here) {
    counted_timer* t = timers_[i];
    if (armed_.count(i) || is_in_heap(t)) return;
    t->when = some_time();
    t->period = some_period();
    t->function = numbered::fire;
    t->seq = ++seq_;
    here.make_room();
    t->retain();  // for the heap
    nanos woke_at = here.wake_when();
    armed_[i] = {std::max<nanos>(t->when, 1), t->period, seq_};
    told_in_time(here.add(t), woke_at, armed_[i].when);
  }

  // A sleeper that sleeps until `woke_at` must not oversleep `when` unless it is told.
  void told_in_time(bool told, nanos woke_at, nanos when) {
    if (!told) CHECK((woke_at != 0 && woke_at <= std::max<nanos>(when, 1)));
  }

  void remove(std::size_t i) {
    CHECK(del_timer(timers_[i], nullptr) == (armed_.erase(i) != 0));
    CHECK_FALSE(del_timer(timers_[i], nullptr));
  }

  // The owner lets go of a timer that a heap still holds.
  void replace(std::size_t i) {
    if (armed_.count(i)) return;
    timers_[i]->release();
    timers_[i] = new counted_timer;
    timers_[i]->number = i;
  }

  void look(timer_heap& h) {
    std::vector<fired> expected;
    for (auto it = armed_.begin(); it != armed_.end();) {
      auto& [i, a] = *it;
      if (timers_[i]->heap != &h || a.when > now_) {
        ++it;
        continue;
      }
      expected.push_back({i, a.seq, a.when});
      if (a.period > 0) {
        a.when += a.period * (1 + (now_ - a.when) / a.period);
        ++it;
      } else {
        it = armed_.erase(it);
      }
    }
    log_of_fired.clear();
    bool ran = false;
    nanos next = h.check(now_, below(2) == 0, &ran);
    CHECK(ran == !expected.empty());
    CHECK(next == h.wake_when());
    CHECK(std::is_sorted(log_of_fired.begin(), log_of_fired.end(),
                         [](const fired& a, const fired& b) { return a.due < b.due; }));
    auto by_timer = [](const fired& a, const fired& b) { return a.timer < b.timer; };
    std::sort(log_of_fired.begin(), log_of_fired.end(), by_timer);
    CHECK((log_of_fired == expected));
  }

  // Nobody may sleep for a timer that was stopped.
  void tidy(timer_heap& h) {
    h.tidy();
    bool any = std::any_of(armed_.begin(), armed_.end(), [&](auto& a) { return timers_[a.first]->heap == &h; });
    if (!any) CHECK(h.wake_when() == 0);
  }

  void move_all() {
    std::size_t from = below(heaps_.size()), to = below(heaps_.size());
    if (from == to) return;
    heaps_[to].take_all(heaps_[from]);
    CHECK(heaps_[from].size() == 0);
    CHECK(heaps_[from].wake_when() == 0);
    CHECK(heaps_[from].deleted_count() == 0);
  }

  void check_hints() {
    for (auto& h : heaps_) {
      nanos least = 0;
      for (auto& [i, a] : armed_) {
        if (timers_[i]->heap == &h && (least == 0 || a.when < least)) least = a.when;
      }
      if (least != 0) CHECK((h.wake_when() != 0 && h.wake_when() <= least));
      CHECK(h.deleted_count() <= h.size());
    }
  }

  static bool is_in_heap(const timer* t) {
    timer_status s = t->status.load(acquire);
    return s != timer_status::no_status && s != timer_status::removed;
  }

  std::mt19937 random_;
  bool periodic_;
  nanos now_ = 1000;
  std::uint64_t seq_ = 0;
  std::array<timer_heap, 3> heaps_;
  std::vector<counted_timer*> timers_;
  std::map<std::size_t, armed_timer> armed_;
};

}  // namespace

TEST_CASE("timer heap: random operations agree with the model") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    {
      model m(seed, seed % 4 == 0 ? 200 : 12, seed % 2 == 0);
      for (int i = 0; i < 500; ++i) m.step();
      m.finish();
    }
    REQUIRE(alive == 0);
  }
}

TEST_CASE("timer heap: equal times, the order of a long queue, and its bounds") {
  timer_heap h;
  std::vector<numbered> ts(1000);
  std::mt19937 random(7);
  for (std::size_t i = 0; i < ts.size(); ++i) {
    ts[i].number = i;
    ts[i].when = static_cast<nanos>(random() % 300);  // 0 and less count as 1: zero means "none"
    ts[i].function = numbered::fire;
    h.make_room();
    bool was_least = h.wake_when() == 0 || std::max<nanos>(ts[i].when, 1) < h.wake_when();
    bool told = h.add(&ts[i]);
    if (was_least) CHECK(told);
  }
  CHECK(h.size() == ts.size());
  log_of_fired.clear();
  bool ran = false;
  CHECK(h.check(0, true, &ran) == 1);
  CHECK_FALSE(ran);
  CHECK(h.check(299, true, &ran) == 0);
  CHECK(ran);
  REQUIRE(log_of_fired.size() == ts.size());
  CHECK(std::is_sorted(log_of_fired.begin(), log_of_fired.end(),
                       [](const fired& a, const fired& b) { return a.due < b.due; }));
}

TEST_CASE("timer heap: no more are run at a time than asked for") {
  timer_heap h;
  std::vector<numbered> ts(10);
  for (auto& t : ts) {
    t.number = static_cast<std::size_t>(&t - ts.data());
    t.when = 100 + static_cast<nanos>(t.number);
    t.function = numbered::fire;
    h.make_room();
    (void)h.add(&t);
  }
  log_of_fired.clear();
  bool ran = false;
  CHECK(h.check(105, true, &ran, 4) == 104);  // the earliest of those that are left: due
  CHECK(log_of_fired.size() == 4);
  CHECK(h.check(105, true, &ran, 4) == 106);
  CHECK(log_of_fired.size() == 6);
  h.check(1000, true, &ran);
  CHECK(log_of_fired.size() == ts.size());
}

// A thread without a P sets time limits and stops them, while nobody looks at the heap (check).
TEST_CASE("timer heap: the array does not grow for timers that were stopped") {
  constexpr std::size_t pending = 100;
  std::vector<counted_timer*> ts;
  timer_heap h;
  numbered first;  // so that no stopped timer is the head of the heap
  (void)change_timer(h, &first, {1, 0, numbered::fire, 0});
  for (std::size_t i = 0; i < 20'000; ++i) {
    ts.push_back(new counted_timer);
    ts.back()->function = numbered::fire;
    (void)change_timer(h, ts.back(), {1000 + static_cast<nanos>(i), 0, numbered::fire, 0});
    if (i < pending) continue;
    REQUIRE(del_timer(ts[i - pending], nullptr));
    ts[i - pending]->release();
  }
  CHECK(h.size() < 4 * pending);
  CHECK(alive < static_cast<int>(4 * pending));
  for (std::size_t i = ts.size() - pending; i < ts.size(); ++i) ts[i]->release();
  h.clear();
  CHECK(alive == 0);
}

TEST_CASE("timer heap: a timer that fires may arm itself again where there is no room") {
  struct again : numbered {
    static void fire(timer* self, std::uint64_t seq, nanos due) noexcept {
      numbered::fire(self, seq, due);
      auto* me = static_cast<again*>(self);
      if (me->others.empty()) return;
      for (numbered& t : me->others) (void)me->heap->add(&t);
      me->others = {};
      me->heap->arm_again(me, due + 100);
    }
    std::span<numbered> others;
  };
  timer_heap h;
  std::vector<numbered> others(63);  // as many as there is room for beside a single timer
  for (numbered& t : others) {
    t.when = 1000;
    t.function = numbered::fire;
  }
  again t;
  t.number = 7;
  t.when = 10;
  t.seq = 3;
  t.function = again::fire;
  t.others = others;
  h.make_room();
  (void)h.add(&t);
  log_of_fired.clear();
  bool ran = false;
  CHECK(h.check(10, false, &ran) == 110);
  CHECK(h.size() == 1 + others.size());
  CHECK(h.check(110, false, &ran) == 1000);
  CHECK(log_of_fired == std::vector<fired>{{7, 3, 10}, {7, 3, 110}});
  h.clear();
}

TEST_CASE("timer heap: stopped timers are cleaned out once they are half") {
  timer_heap h;
  std::vector<numbered> ts(400);
  for (auto& t : ts) {
    t.when = 1000;
    t.function = numbered::fire;
    h.make_room();
    (void)h.add(&t);
  }
  bool ran = false;
  for (std::size_t i = 0; i < 190; ++i) REQUIRE(del_timer(&ts[i], nullptr));
  h.check(10, true, &ran);
  CHECK(h.size() == 400);
  for (std::size_t i = 190; i < 210; ++i) REQUIRE(del_timer(&ts[i], nullptr));
  h.check(10, false, &ran);  // another P's heap: must be left alone
  CHECK(h.size() == 400);
  h.check(10, true, &ran);
  CHECK(h.size() == 190);
  CHECK(h.deleted_count() == 0);
  CHECK_FALSE(ran);
  CHECK(ts[0].status.load(acquire) == timer_status::removed);
  h.clear();
}

TEST_CASE("timer heap: a deadline that is pushed on and on stays one entry") {
  timer_heap h;
  numbered t;
  for (nanos when = 100; when < 100000; when += 3) {
    (void)change_timer(h, &t, {when, 0, numbered::fire, 0});
    if (when > 100) REQUIRE(h.size() == 1);
  }
  h.clear();
}

TEST_CASE("timer heap: who changes or stops a timer does not wait for who works on the heap") {
  timer_heap h;
  numbered stopped, held, later, earlier, gone;
  nanos when = 10;
  for (numbered* t : {&stopped, &held, &later, &earlier, &gone}) {
    (void)change_timer(h, t, {when += 10, 0, numbered::fire, 0});
  }
  REQUIRE(del_timer(&stopped, nullptr));
  // The thread that cleans up finds the next timer in the hands of another thread. It looks again and again, under the
  // lock.
  held.status.store(timer_status::modifying);
  std::thread cleaner([&] { h.tidy(); });
  while (h.deleted_count() != 0) std::this_thread::yield();
  std::atomic<bool> done{false};
  std::thread owner([&] {
    for (nanos d = 1; d <= 100; ++d) (void)change_timer(h, &later, {1000 + d, 0, numbered::fire, 0});
    (void)change_timer(h, &earlier, {5, 0, numbered::fire, 0});
    (void)del_timer(&gone, nullptr);
    (void)change_timer(h, &gone, {2000, 0, numbered::fire, 0});
    (void)del_timer(&gone, nullptr);
    done = true;
  });
  nanos give_up = nanotime() + 5 * second;
  while (!done && nanotime() < give_up) std::this_thread::yield();
  CHECK(done);
  held.status.store(timer_status::waiting);
  cleaner.join();
  owner.join();
  h.clear();
}

// Go's TestOverflowPeriodRuntimeTimer
TEST_CASE("timer heap: a period that reaches beyond the end of time fires once, and others go on") {
  for (nanos period : {forever, forever - 1, forever / 2 + 1}) {
    timer_heap h;
    numbered once, again;
    again.number = 1;
    (void)change_timer(h, &once, {forever / 2, period, numbered::fire, 0});
    (void)change_timer(h, &again, {100, 10, numbered::fire, 0});
    log_of_fired.clear();
    bool ran = false;
    nanos now = forever / 2 + 3;
    CHECK(h.check(now, true, &ran) < now + 10);
    CHECK(log_of_fired.size() == 2);
    nanos next = h.wake_when();
    CHECK(h.check(next, true, &ran) == next + 10);
    CHECK(log_of_fired.size() == 3);
    CHECK((log_of_fired.back() == fired{1, 0, next}));
    REQUIRE(del_timer(&again, nullptr));
    h.tidy();
    CHECK(h.wake_when() == forever);
    h.check(forever - 1, true, &ran);
    CHECK(log_of_fired.size() == 3);
    h.clear();
  }
}

// Real threads: two that run what is due in any heap, three that arm, change and stop the same timers.
//
// Each change_timer arms once. Each "true" of del_timer or change_timer takes one arming back. Each firing uses one up.
// So arms = fired + taken back, whatever the order.
TEST_CASE("timer heap: owners, modifiers and runners on threads of their own") {
  struct shared_timer : timer {
    std::atomic<std::uint64_t> armed{0}, taken_back{0}, fired{0};
    std::atomic<bool> early{false};
    std::uint64_t payload = 0;  // plain: written before arming under `modifying`, read by nobody but the function
    static void fire(timer* self, std::uint64_t, nanos due) noexcept {
      auto* t = static_cast<shared_timer*>(self);
      if (nanotime() < due) t->early = true;
      t->fired.fetch_add(1);
    }
  };
  std::array<timer_heap, 3> heaps;
  std::array<shared_timer, 12> timers;
  std::atomic<bool> stop_runners{false};
  std::vector<std::thread> modifiers, runners;
  for (unsigned r = 0; r < 2; ++r) {
    runners.emplace_back([&, r] {
      std::mt19937 random(r);
      while (!stop_runners) {
        bool ran = false;
        heaps[random() % heaps.size()].check(nanotime(), random() % 2 == 0, &ran);
        if (!ran) std::this_thread::yield();
      }
    });
  }
  for (unsigned m = 0; m < 3; ++m) {
    modifiers.emplace_back([&, m] {
      std::mt19937 random(100 + m);
      for (int i = 0; i < 6000; ++i) {
        shared_timer& t = timers[random() % timers.size()];
        if (random() % 4 == 0) {
          if (del_timer(&t, nullptr)) t.taken_back.fetch_add(1);
        } else {
          t.armed.fetch_add(1);
          nanos when = nanotime() + static_cast<nanos>(random() % 60) * microsecond;
          auto r = change_timer(heaps[random() % heaps.size()], &t, {when, 0, shared_timer::fire, 0});
          if (r.was_pending) t.taken_back.fetch_add(1);
        }
        if (random() % 16 == 0) std::this_thread::yield();
      }
    });
  }
  for (auto& t : modifiers) t.join();
  nanos give_up = nanotime() + 5 * second;
  auto balanced = [](shared_timer& t) { return t.armed == t.fired + t.taken_back; };
  while (!std::all_of(timers.begin(), timers.end(), balanced) && nanotime() < give_up) std::this_thread::yield();
  stop_runners = true;
  for (auto& t : runners) t.join();
  for (auto& t : timers) {
    CHECK(t.armed == t.fired + t.taken_back);
    CHECK_FALSE(t.early);
    CHECK_FALSE(del_timer(&t, nullptr));
  }
  for (auto& h : heaps) {
    CHECK(h.wake_when() == 0);
    CHECK(h.deleted_count() == h.size());
    h.clear();
  }
}

TEST_CASE("timers: threads that arm theirs in a heap never run out of room there") {
  constexpr std::size_t threads = 100, each = 50;
  timer_heap heap, other;
  std::vector<numbered> taken(20'000);
  for (numbered& t : taken) (void)change_timer(other, &t, {forever, 0, numbered::fire, 1});
  std::vector<numbered> timers(threads * each);
  std::atomic<bool> begin{false};
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      while (!begin) std::this_thread::yield();
      for (std::size_t k = 0; k < each; ++k) {
        (void)change_timer(heap, &timers[i * each + k], {forever, 0, numbered::fire, 1});
      }
    });
  }
  begin = true;
  heap.take_all(other);
  for (std::thread& t : all) t.join();
  CHECK(heap.size() == taken.size() + timers.size());
  heap.clear();
}
