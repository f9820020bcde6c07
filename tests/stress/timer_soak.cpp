// Timers of each kind for a long time: made, reset, stopped, dropped and received from at random, by goroutines and by
// threads that weft did not start, while the number of Ps changes between 1 and 4. Every setting is accounted for.
//
//   timer_soak [--seconds=N] [--seed=N]     3 seconds in the suite; by hand: --seconds=600
//
// Exit code 0 and the counts, or 1 and what was wrong. What must hold:
//   - Each setting fires exactly once, or was taken back by a stop or reset that returned true, or was dropped with its
//     timer.
//   - The answers of stop and reset are right: each of them, for a timer that has one user at a time; in sum, for a
//     timer that has several.
//   - A value that is received is the instant that was due, of the current setting; ticks are on their grid.
//   - Nothing is early; nothing is later than a bound, which grows with what a thread that only sleeps notices, too.

#include "tests/stress/soak_arguments.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>
#include <weft/weft.hpp>

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using weft::recv_result;
using weft::time_point;
using duration = clock::duration;

std::uint64_t seed = 1;
std::atomic<bool> over{false};

// --- what is counted

std::atomic<long> wrong{0};
void fault(const char* what, long long value = 0) {
  if (wrong.fetch_add(1) < 20) std::fprintf(stderr, "timer_soak: %s (%lld)\n", what, value);
}

struct account {
  std::atomic<long> set{0}, fired{0}, taken_back{0}, dropped{0};
  long open() const { return set - fired - taken_back - dropped; }
};
account funcs, shared_funcs, abandoned_funcs, chans, shared_chans;
std::atomic<long> ticks{0}, tickers{0}, sleeps{0}, time_limits{0}, procs_changed{0};

std::atomic<std::int64_t> worst_late{0}, worst_stall{0};
void raise_to(std::atomic<std::int64_t>& most, std::int64_t v) {
  std::int64_t m = most;
  while (v > m && !most.compare_exchange_weak(m, v)) {}
}

// How late something may be. The stalls are measured by a thread beside weft that sleeps for 1 ms at a time.
duration bound() { return 2s + 4 * duration(worst_stall.load()); }
void happened(time_point due, time_point now, const char* what) {
  if (now < due) fault(what, (due - now).count());
  raise_to(worst_late, (now - due).count());
}

void measure_stalls() {
  while (!over) {
    auto until = clock::now() + 1ms;
    std::this_thread::sleep_until(until);
    raise_to(worst_stall, (clock::now() - until).count());
  }
}

class dice {
 public:
  explicit dice(unsigned who) : random_(seed * 1000003 + who) {}
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  // Some settings fire at once, some soon, some while their slot is visited again, some never by themselves.
  duration some_time() {
    switch (below(12)) {
      case 0: return 0ns;
      case 1: return -std::chrono::milliseconds(below(1000));
      case 2: return 1h;
      case 3: return duration::max();
      case 4:
      case 5: return std::chrono::microseconds(below(20000));
      default: return std::chrono::microseconds(below(500));
    }
  }

 private:
  std::mt19937_64 random_;
};

// A setting that was made between two looks at the clock.
struct setting {
  time_point from, to;  // the setting is due between these
  setting(time_point before, duration d, time_point after) : from(plus(before, d)), to(plus(after + known_to, d)) {}
  setting() = default;
  // How precisely it is known when in a look the clock was read (deadline_clock.hpp). The time is never too early.
  static constexpr duration known_to = 50ns;
  static time_point plus(time_point t, duration d) {
    return d > 10000h || t == time_point::max() ? time_point::max() : t + std::max(d, duration::zero());
  }
};

// --- timers that have one user at a time

// A timer whose function runs. The times of its runs are noted, and compared once all runs that are due have come.
class func_slot {
 public:
  void visit(dice& d) {
    settle();
    switch (d.below(6)) {
      case 0: take(timer_.stop()); break;
      case 1: abandon(d); break;
      default: {
        auto after = d.some_time();
        auto before = clock::now();
        bool pending = timer_.reset(after);
        take(pending);
        set(setting(before, after, clock::now()));
      }
    }
  }

  void end() {
    take(timer_.stop());
    while (!settle()) weft::sleep(1ms);
    timer_.stop_and_wait();
  }

 private:
  struct log {
    weft::mutex mutex;
    std::vector<time_point> runs;
  };

  void set(setting s) {
    ++funcs.set;
    armed_ = true;
    present_ = s;
  }

  // Accounts for the answer of stop or reset about the current setting.
  void take(bool pending) {
    if (!armed_) {
      if (pending) fault("func: true, but it was not set");
      return;
    }
    armed_ = false;
    if (pending) {
      ++funcs.taken_back;
    } else {
      due_.push_back(present_.from);  // the function runs, or has run
    }
  }

  // Compares the runs with what was due. Returns true if nothing is under way.
  bool settle() {
    std::lock_guard hold(log_->mutex);
    auto& runs = log_->runs;
    if (armed_ && runs.size() > due_.size()) {  // the current setting ran
      armed_ = false;
      due_.push_back(present_.from);
    }
    if (armed_) {
      if (clock::now() > setting::plus(present_.to, bound())) fault("func: it did not run in time");
      return false;
    }
    if (runs.size() > due_.size()) fault("func: it ran twice");
    if (runs.size() < due_.size()) {
      if (clock::now() > *std::max_element(due_.begin(), due_.end()) + bound()) {
        fault("func: stop said that it runs, but it does not");
        due_.clear();
      }
      return false;
    }
    // Which run belongs to which setting is not known. But in order of time, each run must come after one due time.
    std::sort(due_.begin(), due_.end());
    std::sort(runs.begin(), runs.end());
    for (std::size_t i = 0; i < due_.size(); ++i) happened(due_[i], runs[i], "func: it ran early, by ns");
    funcs.fired += static_cast<long>(runs.size());
    runs.clear();
    due_.clear();
    return true;
  }

  // Sets a timer and drops its handle at once: its function must run nevertheless.
  void abandon(dice& d) {
    ++abandoned_funcs.set;
    auto after = std::chrono::microseconds(d.below(1000));
    auto due = clock::now() + after;
    weft::after_func(after, [due] {
      happened(due, clock::now(), "abandoned func: it ran early, by ns");
      ++abandoned_funcs.fired;
    });
  }

  std::shared_ptr<log> log_ = std::make_shared<log>();
  weft::func_timer timer_ = weft::after_func(duration::max(), [log = log_] {
    auto now = clock::now();
    std::lock_guard hold(log->mutex);
    log->runs.push_back(now);
  });
  bool armed_ = (++funcs.set, true);
  setting present_{clock::now(), duration::max(), clock::now()};
  std::vector<time_point> due_;
};

// A timer with a channel. It has one user at a time, which knows what each answer must be.
class chan_slot {
 public:
  void visit(dice& d) {
    switch (d.below(8)) {
      case 0: expect(timer_->stop(), "stop"); break;
      case 1:
        if (armed_) ++chans.dropped;
        make(d);
        break;
      case 2: receive([&](time_point& v) { return timer_->channel().try_recv(v); }); break;
      case 3:
      case 4:
        receive([&](time_point& v) { return timer_->channel().recv_for(v, std::chrono::microseconds(d.below(600))); });
        break;
      default: {
        auto after = d.some_time();
        auto before = clock::now();
        bool pending = timer_->reset(after);
        expect(pending, "reset");
        set(setting(before, after, clock::now()));
      }
    }
  }
  void end() { expect(timer_->stop(), "stop"); }

 private:
  void make(dice& d) {
    auto after = d.some_time();
    auto before = clock::now();
    timer_.emplace(after);
    set(setting(before, after, clock::now()));
  }
  void set(setting s) {
    ++chans.set;
    armed_ = true;
    present_ = s;
  }
  void expect(bool pending, const char* operation) {
    if (pending != armed_) fault(operation, pending);
    if (pending) ++chans.taken_back;
    armed_ = false;
  }
  void receive(auto how) {
    time_point v;
    auto begin = clock::now();
    recv_result r = how(v);
    auto now = clock::now();
    if (r != recv_result::value) {
      // Due before this call began, or long before it gave up.
      if (armed_ && (present_.to < begin || setting::plus(present_.to, bound()) < now))
        fault("chan: due, but not there");
      return;
    }
    if (!armed_) fault("chan: a value, but it was not set");
    if (v < present_.from || v > present_.to) fault("chan: not the instant that was due", (v - present_.from).count());
    happened(std::max(v, begin), now, "chan: received early, by ns");
    armed_ = false;
    ++chans.fired;
  }

  std::optional<weft::timer> timer_{std::in_place, duration::max()};
  bool armed_ = (++chans.set, true);
  setting present_{clock::now(), duration::max(), clock::now()};
};

class ticker_slot {
 public:
  void visit(dice& d) {
    switch (d.below(10)) {
      case 0:
        ticker_->stop();
        ticks_ = false;
        break;
      case 1: start(d, [&](duration p) { ticker_.emplace(p); }); break;
      case 2: start(d, [&](duration p) { ticker_->reset(p); }); break;
      default: {
        time_point v;
        if (ticker_->channel().recv_for(v, std::chrono::microseconds(d.below(400))) == recv_result::value) received(v);
      }
    }
  }
  void end() { ticker_->stop(); }

 private:
  void start(dice& d, auto how) {
    ++tickers;
    period_ = std::chrono::microseconds(1 + d.below(d.below(4) == 0 ? 20000 : 300));
    auto before = clock::now();
    how(period_);
    first_ = setting(before, period_, clock::now());
    ticks_ = true;
    last_.reset();
  }
  void received(time_point v) {
    if (!ticks_) fault("ticker: a tick after stop");
    if (clock::now() < v) fault("ticker: early by ns", (v - clock::now()).count());
    bool on_grid = last_ ? v > *last_ && (v - *last_) % period_ == 0ns : v >= first_.from && v <= first_.to;
    if (!on_grid) fault("ticker: not on its grid", (v - (last_ ? *last_ : first_.from)).count());
    last_ = v;
    ++ticks;
  }

  std::optional<weft::ticker> ticker_{std::in_place, 1h};
  bool ticks_ = false;
  duration period_{1h};
  setting first_;
  std::optional<time_point> last_;
};

struct slot {
  weft::mutex mutex;
  func_slot func;
  chan_slot chan;
  ticker_slot ticker;
};

// --- timers that all use at once

struct commons {
  weft::func_timer func = weft::after_func(1h, [] { ++shared_funcs.fired; });
  weft::timer timer{1h};
  commons() {
    ++shared_funcs.set;
    ++shared_chans.set;
  }
  void visit(dice& d) {
    auto soon = std::chrono::microseconds(d.below(300));
    time_point v;
    switch (d.below(7)) {
      case 0: shared_funcs.taken_back += func.stop(); break;
      case 1: shared_chans.taken_back += timer.stop(); break;
      case 2:
        if (timer.channel().try_recv(v) == recv_result::value) ++shared_chans.fired;
        break;
      case 3:
        if (timer.channel().recv_for(v, soon) == recv_result::value) ++shared_chans.fired;
        break;
      case 4:
        ++shared_chans.set;
        shared_chans.taken_back += timer.reset(soon);
        break;
      default: ++shared_funcs.set; shared_funcs.taken_back += func.reset(soon);
    }
  }
};

// --- who uses them

void work(unsigned who, std::vector<std::unique_ptr<slot>>& slots, std::array<commons, 4>& shared) {
  dice d(who);
  while (!over) {
    if (d.below(4) == 0) {
      shared[d.below(4)].visit(d);
      continue;
    }
    slot& s = *slots[d.below(static_cast<unsigned>(slots.size()))];
    std::unique_lock hold(s.mutex, std::try_to_lock);
    if (!hold) continue;
    switch (d.below(4)) {
      case 0:
      case 1: s.func.visit(d); break;
      case 2: s.chan.visit(d); break;
      default: s.ticker.visit(d);
    }
    hold.unlock();
    if (d.below(10) == 0) weft::sleep(std::chrono::microseconds(d.below(200)));
    if (d.below(100) == 0) {
      for (auto end = clock::now() + std::chrono::microseconds(d.below(2000)); clock::now() < end;) {}
    }
  }
}

void wait_in_each_way(unsigned who) {
  dice d(who);
  weft::chan<int> silent;
  while (!over) {
    auto t = std::chrono::microseconds(d.below(d.below(8) == 0 ? 30000 : 400));
    auto due = clock::now() + t;
    int v;
    switch (d.below(4)) {
      case 0: weft::sleep(t); break;
      case 1: weft::sleep_until(due); break;
      case 2: (void)silent.recv_for(v, t); break;
      default: weft::select(weft::on_recv(silent), weft::on_timeout(t));
    }
    happened(due, clock::now(), "a wait ended early, by ns");
    ++(d.below(2) ? sleeps : time_limits);
  }
}

void print(const char* name, const account& a) {
  std::printf("  %-22s %10ld set = %ld fired + %ld taken back + %ld dropped\n", name, a.set.load(), a.fired.load(),
              a.taken_back.load(), a.dropped.load());
}

int soak(std::chrono::seconds time) {
  std::vector<std::unique_ptr<slot>> slots;
  for (int i = 0; i < 60; ++i) slots.push_back(std::make_unique<slot>());
  std::array<commons, 4> shared;
  auto end = clock::now() + time;

  weft::wait_group w;
  for (unsigned g = 1; g <= 6; ++g) w.go([&, g] { work(g, slots, shared); });
  for (unsigned g = 10; g < 18; ++g) w.go([g] { wait_in_each_way(g); });
  std::vector<std::thread> threads;
  for (unsigned t = 20; t < 22; ++t) threads.emplace_back([&, t] { work(t, slots, shared); });
  threads.emplace_back([] { wait_in_each_way(30); });

  dice d(0);
  while (clock::now() < end && wrong == 0) {
    weft::set_procs(1 + d.below(4));
    ++procs_changed;
    weft::sleep(std::chrono::microseconds(d.below(10000)));
  }
  over = true;
  w.wait();
  weft::blocking([&] {
    for (auto& t : threads) t.join();
  });

  for (auto& s : slots) {
    s->func.end();
    s->chan.end();
    s->ticker.end();
  }
  for (auto& s : shared) {
    shared_funcs.taken_back += s.func.stop();
    shared_chans.taken_back += s.timer.stop();
    s.func.stop_and_wait();
  }
  // What was abandoned runs soon.
  auto patience = clock::now() + bound();
  while ((abandoned_funcs.open() != 0 || shared_funcs.open() != 0) && clock::now() < patience) weft::sleep(1ms);
  for (const account* a : {&funcs, &shared_funcs, &abandoned_funcs, &chans, &shared_chans}) {
    if (a->open() != 0) fault("settings that neither fired nor were taken back", a->open());
  }
  if (worst_late > bound().count()) fault("later than the bound, by ns", worst_late - bound().count());
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto chosen = weft::test::read_soak_arguments("timer_soak", argc, argv);
  const std::chrono::seconds time = chosen.time;
  seed = chosen.seed;
  // If the soak hangs, every goroutine is shown.
  std::signal(SIGALRM, [](int) { ::kill(::getpid(), SIGQUIT); });
  ::alarm(static_cast<unsigned>(time.count()) + 50);

  std::thread meter(measure_stalls);
  int code = weft::run([time] { return soak(time); });
  meter.join();
  print("functions", funcs);
  print("functions, let go", abandoned_funcs);
  print("functions, shared", shared_funcs);
  print("channels", chans);
  print("channels, shared", shared_chans);
  std::printf("  %ld ticks of %ld tickers, %ld sleeps, %ld time limits, %ld changes of the number of Ps\n",
              ticks.load(), tickers.load(), sleeps.load(), time_limits.load(), procs_changed.load());
  std::printf("  worst lateness %.3f ms; a thread that only sleeps was late by %.3f ms at worst\n",
              static_cast<double>(worst_late) / 1e6, static_cast<double>(worst_stall) / 1e6);
  std::printf("%s\n", code == 0 ? "all accounted for" : "NOT RIGHT, see above");
  return code;
}
