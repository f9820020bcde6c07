// How an M goes to sleep (doze.cpp, poller_sleep.cpp, timing.cpp): dozing, sleeping in the poller, coming by. A test
// acts between two steps of the M where the M calls another file: the linker redirects these calls to functions of this
// test. At the end, how a P looks at its ring.
//
// Kills these mutants (tests/mutants): doze-*, comes-by-*, poller-no-second-look, pin-poller-does-not-look,
// crumbs-end-the-doze, punctual-*, starve-ring-waits-empty, sysmon-helps-beside-dozer, help-nobody-follows,
// help-follower-looks, poller-sysmon-is-not-told, poller-alarm-replaces-promise,
// poller-never-watched, poller-always-watched.

#include "netpoll/netpoll.hpp"
#include "sched/io.hpp"
#include "sched/park.hpp"
#include "sched/runqueues.hpp"
#include "tests/sched/helpers.hpp"
#include "tests/support/catch.hpp"

#include <fcntl.h>
#include <optional>
#include <sys/timerfd.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace weft::test;
using weft::chan;

namespace {

// How a doze passes. Usually it lasts 100 µs.
enum class doze {
  as_usual,
  until_woken,
  with_help_wanted,  // meanwhile somebody wants help, so the M dozes on
};
std::atomic<doze> dozes{doze::as_usual};

class doze_for {
 public:
  explicit doze_for(doze d) { dozes = d; }
  ~doze_for() {
    dozes = doze::as_usual;
    // An M that dozes by now has seen `as_usual`, or is seen here.
    rt::lock_guard hold(rt::sched.mutex);
    if (rt::M* m = rt::sched.dozer.exchange(nullptr, rt::seq_cst)) m->parked.wakeup();
  }
};

// Holds up an M at its n-th look at the earliest timer. There must be only one timer.
class stop_at_look {
 public:
  enum class since {
    tidying,  // where an M is about to sleep in the poller; at its second look, it has said so
    here,     // where count_from_here() is called
  };
  stop_at_look(int n, since from) {
    passed_ = false;
    from_ = from;
    at_ = n;
  }
  ~stop_at_look() {
    at_ = 0;
    passed_ = true;
  }
  bool reached() {
    return stay_until([] { return at_ == 0; });
  }
  void let_pass() { passed_ = true; }

  static void count_from_here() { looks_ = 0; }
  static void tidied() {
    if (from_ == since::tidying) looks_ = 0;
  }
  static void looked() {
    if (at_ == 0 || ++looks_ != at_) return;
    at_ = 0;
    stay_until(passed_);
  }

 private:
  static constexpr int not_counted = 1000;
  static inline thread_local int looks_ = not_counted;
  static inline std::atomic<int> at_{0};
  static inline std::atomic<since> from_{since::tidying};
  static inline std::atomic<bool> passed_{true};
};

// All timers seem to all Ms to be due in 5 ms, at any time. That is too soon for sysmon, to which it does not seem so,
// and no timer is run.
std::atomic<bool> timers_seem_soon{false};

// When sysmon's alarm was last set to ring.
std::atomic<rt::nanos> sysmon_rings_at{0};

// When the M `beside` has set the alarm, another one makes a promise.
struct {
  std::atomic<const rt::M*> beside{nullptr};
  rt::M* by = nullptr;
  rt::nanos due = 0;
} promise_meanwhile;

bool somebody_polls() { return rt::sched.last_poll.load(rt::seq_cst) == 0; }

// True once all Ms except `but` of them sleep on their notes, and `idle_ps` Ps idle.
bool sleep_on_notes(std::uint32_t but, std::uint32_t idle_ps) {
  return stay_until([=] {
    rt::lock_guard hold(rt::sched.mutex);
    return rt::sched.idle_ms + but == rt::sched.live_ms && rt::sched.idle_ps.load(rt::seq_cst) == idle_ps;
  });
}

}  // namespace

extern "C" bool __real__ZN4weft2rt16futex_wait_untilEPSt6atomicIjEjl(rt::atomic<std::uint32_t>*, std::uint32_t,
                                                                     rt::nanos);
extern "C" bool __wrap__ZN4weft2rt16futex_wait_untilEPSt6atomicIjEjl(rt::atomic<std::uint32_t>* word,
                                                                     std::uint32_t expected, rt::nanos deadline) {
  rt::M* dozer = rt::sched.dozer.load(rt::seq_cst);
  if (dozer && static_cast<void*>(word) == static_cast<void*>(&dozer->parked)) {
    if (dozes == doze::until_woken) deadline += rt::second * 3600;
    if (dozes == doze::with_help_wanted) rt::sched.help_wanted.store(true, rt::relaxed);
  }
  return __real__ZN4weft2rt16futex_wait_untilEPSt6atomicIjEjl(word, expected, deadline);
}

extern "C" void __real__ZN4weft2rt10timer_heap4tidyEv(rt::timer_heap*);
extern "C" void __wrap__ZN4weft2rt10timer_heap4tidyEv(rt::timer_heap* heap) {
  __real__ZN4weft2rt10timer_heap4tidyEv(heap);
  stop_at_look::tidied();
}

extern "C" rt::nanos __real__ZNK4weft2rt10timer_heap9wake_whenEv(const rt::timer_heap*);
extern "C" rt::nanos __wrap__ZNK4weft2rt10timer_heap9wake_whenEv(const rt::timer_heap* heap) {
  rt::nanos when = __real__ZNK4weft2rt10timer_heap9wake_whenEv(heap);
  if (when == 0) return 0;
  stop_at_look::looked();
  return timers_seem_soon && rt::this_m() ? rt::nanotime() + 5 * rt::millisecond : when;
}

extern "C" int __real_timerfd_settime(int, int, const itimerspec*, itimerspec*);
extern "C" int __wrap_timerfd_settime(int fd, int flags, const itimerspec* at, itimerspec* before) {
  if (at->it_value.tv_sec != 0) sysmon_rings_at = at->it_value.tv_sec * rt::second + at->it_value.tv_nsec;
  const int result = __real_timerfd_settime(fd, flags, at, before);
  if (const rt::M* m = rt::this_m(); m && m == promise_meanwhile.beside) {
    promise_meanwhile.beside = nullptr;
    rt::sched.promise_due.store(promise_meanwhile.due, rt::relaxed);
    rt::sched.promiser.store(promise_meanwhile.by, rt::seq_cst);
  }
  return result;
}

// Says whether what this P holds is worth waking the dozer for.
static void here_is(rt::spoils s) { rt::this_m()->p.load()->spoils_here.store(s, rt::relaxed); }

// D2. When the goroutines are made ready, no P idles, so nobody is woken for them.
TEST_CASE("doze: who dozes has seen what was made ready before") {
  weft::run(
      [] {
        three_times([&] {
          sleeper one, another;
          neighbour other;
          weft::no_preemption alone;
          doze_for dozing(doze::until_woken);
          held_scheduler held;
          other.over = true;
          std::this_thread::sleep_for(a_moment);
          rt::sched.help_wanted.store(true, rt::relaxed);
          here_is(rt::spoils::work);
          bool woken = one.wake() && another.wake();  // the second is in runnext, so the first is in the ring
          held.release();
          if (woken) CHECK(one.runs());
          return woken;
        });
      },
      {.procs = 2});
}

TEST_CASE("doze: nobody ends it for crumbs, but for work") {
  weft::run(
      [] {
        three_times([&] {
          sleeper one, another, third;
          neighbour other;
          weft::no_preemption alone;
          doze_for dozing(doze::until_woken);
          rt::sched.help_wanted.store(true, rt::relaxed);
          other.over = true;
          CHECK(stay_until([] { return rt::sched.dozer.load(rt::seq_cst) != nullptr; }));
          here_is(rt::spoils::crumbs);
          bool woken = one.wake() && another.wake();
          CHECK_FALSE(stay_until([&] { return one.ran.load(); }, 10ms));
          here_is(rt::spoils::work);
          woken = woken && third.wake();
          if (woken) CHECK(one.runs());
          return woken;
        });
      },
      {.procs = 2});
}

// The dozer looks at the global queue itself, every 100 µs, unless it is of no use.
TEST_CASE("doze: sysmon wakes nobody for the global queue beside one who dozes") {
  weft::run(
      [] {
        std::atomic<int> ran{0};
        neighbour other;
        weft::no_preemption alone;
        doze_for dozing(doze::until_woken);
        rt::sched.help_wanted.store(true, rt::relaxed);
        other.over = true;
        REQUIRE(stay_until([] { return rt::sched.dozer.load(rt::seq_cst) != nullptr; }));
        here_is(rt::spoils::crumbs);
        for (int i = 0; i < 400; ++i) weft::go([&] { ++ran; });  // more than the ring holds
        REQUIRE(rt::sched.global_size.load(rt::relaxed) != 0);
        CHECK_FALSE(stay_until([&] { return ran != 0; }, 50ms));
      },
      {.procs = 2});
}

TEST_CASE("doze: while all leave, an M that collides leaves what it has to the one who dozes") {
  weft::run(
      [] {
        std::atomic<int> turns{0};
        std::atomic<bool> over{false};
        auto goes_on = [&](clock::duration limit) {
          return stay_until([&, before = turns.load()] { return turns != before; }, limit);
        };
        neighbour other;
        auto collides = weft::spawn([&] {
          for (; !over; ++turns) {
            here_is(rt::spoils::crumbs);  // otherwise the yield would end the doze
            rt::M* m = rt::this_m();
            m->collides = true;
            m->p.load()->next_look.store(1, rt::relaxed);
            weft::yield();
          }
        });
        {
          weft::no_preemption alone;
          REQUIRE(goes_on(late));
          {
            doze_for dozing(doze::until_woken);
            rt::sched.help_wanted.store(true, rt::relaxed);
            other.over = true;
            REQUIRE(stay_until([] { return rt::sched.dozer.load(rt::seq_cst) != nullptr; }));
            CHECK(goes_on(late));
            rt::sched.all_leave_to.store(rt::sched.dozer, rt::relaxed);
            CHECK(stay_until([] { return rt::sched.idle_ps.load(rt::seq_cst) == 2; }));
            CHECK_FALSE(goes_on(20ms));
          }
          CHECK(goes_on(late));
        }
        over = true;
        collides.join();
      },
      {.procs = 3});
}

// D3. The test takes the dozer off without waking it. It must stay as it is, counted as spinning, until it is woken.
TEST_CASE("doze: who was taken off waits for the wake-up") {
  weft::run(
      [] {
        neighbour other;
        weft::no_preemption alone;
        rt::M* dozer = nullptr;
        {
          doze_for dozing(doze::with_help_wanted);
          rt::sched.help_wanted.store(true, rt::relaxed);
          other.over = true;
          REQUIRE(stay_until([&] { return (dozer = rt::sched.dozer.exchange(nullptr, rt::seq_cst)) != nullptr; }));
        }
        rt::sched.help_wanted.store(false, rt::relaxed);
        CHECK_FALSE(stay_until([] { return rt::sched.spinning.load(rt::seq_cst) == 0; }, 20ms));
        dozer->parked.wakeup();
        CHECK(stay_until([] { return rt::sched.spinning.load(rt::seq_cst) == 0; }));
      },
      {.procs = 2});
}

// D4. Nobody wakes the dozer for what is in a P's runnext.
TEST_CASE("doze: what lies in runnext is seen after it, however often help is wanted") {
  weft::run(
      [] {
        for (int i = 0; i < 3; ++i) {
          sleeper one;
          neighbour other;
          weft::no_preemption alone;
          doze_for dozing(doze::with_help_wanted);
          rt::sched.help_wanted.store(true, rt::relaxed);
          other.over = true;
          CHECK(stay_until([] { return rt::sched.dozer.load(rt::seq_cst) != nullptr; }));
          if (one.wake()) CHECK(one.runs());
        }
      },
      {.procs = 2});
}

// There is only one thread beside main's, so it is this one that would doze.
TEST_CASE("doze: nobody dozes who has to sleep for a timer, however late that is due") {
  weft::run(
      [] {
        neighbour other;
        weft::no_preemption alone;
        auto something = weft::after_func(1h, [] {});
        doze_for dozing(doze::with_help_wanted);
        rt::sched.help_wanted.store(true, rt::relaxed);
        other.over = true;
        CHECK(stay_until([] { return rt::sched.last_poll.load(rt::seq_cst) == 0; }));
        something.stop();
        rt::netpoll_break();
      },
      {.procs = 2, .max_threads = 2});
}

// So is this one. It finds nothing while a goroutine waits for a descriptor.
TEST_CASE("doze: beside a descriptor that somebody waits for only if another M looks into the poller") {
  int fd[2];
  REQUIRE(::pipe(fd) == 0);
  weft::run(
      [&] {
        auto reader = weft::spawn([&] { weft::io::wait_readable(fd[0]); });
        CHECK(eventually([] { return rt::sched.poll_waiters.load(rt::relaxed) == 1; }));
        enum class last_look { ours, its_own, long_ago };
        for (auto last : {last_look::ours, last_look::its_own, last_look::long_ago}) {
          neighbour other;
          weft::no_preemption alone;
          doze_for dozing(doze::with_help_wanted);
          const rt::M* it = nullptr;
          for (int i = 0; i < 2; ++i) {
            const rt::M* m = rt::sched.all_ps[i].load(rt::acquire)->m.load(rt::relaxed);
            if (m != rt::this_m()) it = m;
          }
          rt::sched.spare_looker.store(last == last_look::its_own ? it : rt::this_m(), rt::relaxed);
          rt::sched.spare_look.store(last == last_look::long_ago ? 0 : rt::nanotime() + 3600 * rt::second, rt::relaxed);
          rt::sched.help_wanted.store(true, rt::relaxed);
          other.over = true;
          if (last == last_look::ours) {
            CHECK(stay_until([] { return rt::sched.dozer.load(rt::seq_cst) != nullptr; }));
            CHECK_FALSE(somebody_polls());
          } else {
            CHECK(stay_until([] { return somebody_polls(); }));
          }
        }
        CHECK(::write(fd[1], "x", 1) == 1);
        reader.join();
      },
      {.procs = 2, .max_threads = 2});
  ::close(fd[0]);
  ::close(fd[1]);
}

// P2. Otherwise the sleep would hide a deadlock.
TEST_CASE("poller: nobody sleeps there for a timer that was stopped meanwhile") {
  weft::run(
      [] {
        weft::no_preemption alone;
        stop_at_look stop(1, stop_at_look::since::tidying);
        auto something = weft::after_func(1h, [] {});
        CHECK(stop.reached());
        something.stop();
        for (int i = 0; i < 2; ++i) rt::sched.all_ps[i].load(rt::acquire)->timers.tidy();  // as an M that goes to sleep
        stop.let_pass();
        CHECK(sleep_on_notes(1, 1));
        rt::netpoll_break();
      },
      {.procs = 2});
}

TEST_CASE("poller: while the one who slept there runs a goroutine for long, another one does") {
  int first[2], second[2];
  REQUIRE(::pipe2(first, O_NONBLOCK | O_CLOEXEC) == 0);
  REQUIRE(::pipe2(second, O_NONBLOCK | O_CLOEXEC) == 0);
  weft::run(
      [&] {
        auto computes = weft::spawn([&] {
          if (weft::io::wait_readable(first[0])) return false;
          weft::no_preemption alone;
          const rt::nanos in = sysmon_rings_at - rt::nanotime();
          CHECK((-5 * rt::second < in && in <= rt::millisecond));
          rt::sched.watch_poller_until.store(0, rt::relaxed);
          bool found = stay_until([] { return somebody_polls(); });
          CHECK(stay_until([] { return rt::sched.watch_poller_until.load(rt::relaxed) > rt::nanotime(); }));
          return found;
        });
        auto waits = weft::spawn([&] { return weft::io::wait_readable(second[0]); });
        std::thread writer([&] {  // writes once all sleep
          std::this_thread::sleep_for(50ms);
          rt::sched.watch_poller_until.store(rt::nanotime() + rt::second, rt::relaxed);
          (void)!::write(first[1], "x", 1);
        });
        CHECK(computes.join());
        CHECK(::write(second[1], "x", 1) == 1);
        CHECK(!waits.join());
        weft::blocking([&] { writer.join(); });
      },
      {.procs = 2});
  for (int fd : {first[0], first[1], second[0], second[1]}) ::close(fd);
}

TEST_CASE("poller: the alarm for a look there does not replace that of a promise") {
  weft::run([] {
    weft::no_preemption alone;
    rt::M other;
    promise_meanwhile.by = &other;
    promise_meanwhile.due = rt::nanotime() + 3600 * rt::second;
    rt::sched.sysmon_polls.store(0, rt::relaxed);
    rt::sched.coarse_now.store(rt::nanotime(), rt::relaxed);
    rt::have_sysmon_poll();
    CHECK(sysmon_rings_at != rt::sched.sysmon_polls);  // it is not known to be of use
    rt::sched.watch_poller_until.store(rt::nanotime() + rt::second, rt::relaxed);
    promise_meanwhile.beside = rt::this_m();
    rt::have_sysmon_poll();
    CHECK(sysmon_rings_at == promise_meanwhile.due);
    sysmon_rings_at = 0;
    rt::sched.sysmon_polls.store(0, rt::relaxed);
    rt::have_sysmon_poll();  // there is a promise
    CHECK(sysmon_rings_at == 0);
    rt::sched.promiser.store(nullptr, rt::seq_cst);
  });
}

// L2. The M is held up on its way into the poller, while its pinned goroutine is made ready.
TEST_CASE("poller: nobody sleeps there whose pinned goroutine was made ready before") {
  weft::run(
      [] {
        chan<int> c;
        std::optional<weft::func_timer> something;
        std::atomic<rt::M*> owner{nullptr};
        std::atomic<bool> ran{false};
        stop_at_look stop(2, stop_at_look::since::tidying);
        weft::no_preemption alone;  // so the goroutine runs on another M, and yet another M has to come for it
        auto pinned = weft::spawn([&] {
          weft::pin here;
          CHECK(sleep_on_notes(2, 0));  // no other M may sleep in the poller for what follows
          rt::g_list nobody;
          rt::poll_network(1, nobody);  // takes a break that the end of the last run() may have left
          something = weft::after_func(1h, [] {});
          owner = rt::this_m();
          c.recv();
          ran = true;
        });
        CHECK(stop.reached());
        bool woken = c.try_send(1);
        CHECK(woken);
        CHECK(stay_until([&] { return (owner.load()->requests.load(rt::seq_cst) & rt::request::pinned) != 0; }));
        { rt::lock_guard delivered(rt::sched.mutex); }
        stop.let_pass();
        CHECK(stay_until(ran));
        something->stop();
        rt::netpoll_break();
      },
      {.procs = 2});
}

// --- comes_by (timing.cpp): the last goroutine of a P goes to sleep, and its M has told no other M of the timer

namespace {

// Calls f in a plain thread, while no goroutine runs. One M is in a system call.
template <class F>
void run_beside(F f) {
  weft::run([&] { weft::blocking([&] { std::thread(f).join(); }); }, {.procs = 2});
}

// A goroutine that goes to sleep once it is told to.
struct goes_to_sleep {
  explicit goes_to_sleep(clock::duration d) : limit(d) {}
  ~goes_to_sleep() {
    c.close();
    stay_until(over);
  }

  const clock::duration limit;
  chan<int> c;
  std::atomic<bool> runs{false}, shall_sleep{false}, over{false};
  const bool started = (weft::go([this] {
                          weft::no_preemption alone;
                          runs = true;
                          stay_until(shall_sleep);
                          stop_at_look::count_from_here();
                          int v;
                          (void)c.recv_for(v, limit);
                          over = true;
                        }),
                        stay_until(runs));
};

// A goroutine that an M finds in the global queue. It computes until it sees that somebody sleeps for the timer.
struct found_work {
  explicit found_work(std::function<bool()> slept_for) : condition(std::move(slept_for)) {}

  // Called under sched.mutex. Wakes nobody, as if all Ms were about to look.
  void append() {
    rt::G* it = g;
    it->set_state(rt::g_state::waiting, rt::g_state::runnable);
    rt::global_put(it);
  }
  bool sees_it() {
    stay_until(over);
    return seen;
  }

  const std::function<bool()> condition;
  std::atomic<rt::G*> g{nullptr};
  std::atomic<bool> over{false};
  bool seen = false;
  const bool started = (weft::go([this] {
                          weft::no_preemption alone;
                          {
                            rt::runtime_scope scope;
                            g = scope.g();
                            scope.resumed_on(rt::park(scope.m(), nullptr, nullptr, rt::wait_reason::chan_recv));
                          }
                          seen = stay_until(condition);
                          over = true;
                        }),
                        stay_until([this] { return g != nullptr; }) && sleep_on_notes(1, 2));
};

}  // namespace

TEST_CASE("comes_by: who finds work on its way sends another one to the poller") {
  run_beside([] {
    found_work work(somebody_polls);
    goes_to_sleep sleeper(1h);
    CHECK(sleep_on_notes(2, 1));
    timers_seem_soon = true;
    stop_at_look stop(1, stop_at_look::since::here);
    sleeper.shall_sleep = true;
    CHECK(stop.reached());
    CHECK(!somebody_polls());
    {
      rt::lock_guard hold(rt::sched.mutex);
      work.append();
    }
    stop.let_pass();
    CHECK(work.sees_it());
    timers_seem_soon = false;
  });
}

TEST_CASE("comes_by: who finds work at last, when it spins, sends another one to the poller") {
  run_beside([] {
    found_work work(somebody_polls);
    goes_to_sleep sleeper(1h);
    CHECK(sleep_on_notes(2, 1));
    timers_seem_soon = true;
    {
      rt::lock_guard hold(rt::sched.mutex);
      sleeper.shall_sleep = true;
      CHECK(stay_until([] { return rt::sched.spinning.load(rt::seq_cst) == 1; }));
      std::this_thread::sleep_for(a_moment);  // until it wants to give up its P
      CHECK(!somebody_polls());
      work.append();
    }
    CHECK(work.sees_it());
    timers_seem_soon = false;
  });
}

TEST_CASE("comes_by: not if somebody sleeps in the poller for longer") {
  run_beside([] {
    found_work work([] {
      rt::nanos until = rt::sched.poll_until.load(rt::seq_cst);
      return somebody_polls() && until != 0 && until < rt::nanotime() + 2700 * rt::second;
    });
    auto far = weft::after_func(1h, [] {});
    CHECK(stay_until([] { return rt::sched.poll_until.load(rt::seq_cst) != 0; }));
    CHECK(sleep_on_notes(2, 2));
    goes_to_sleep sleeper(30min);
    CHECK(sleep_on_notes(3, 1));
    stop_at_look stop(1, stop_at_look::since::here);
    sleeper.shall_sleep = true;
    CHECK(stop.reached());
    {
      rt::lock_guard hold(rt::sched.mutex);
      work.append();
    }
    stop.let_pass();
    CHECK(work.sees_it());
    far.stop();
  });
}

TEST_CASE("comes_by: not if the goroutine runs on") {
  weft::run(
      [] {
        weft::no_preemption alone;
        CHECK(sleep_on_notes(1, 1));  // so that no M that is awake finds the timer by itself
        auto something = weft::after_func(1h, [] {});
        CHECK(stay_until([] { return somebody_polls(); }));
        something.stop();
      },
      {.procs = 2});
}

TEST_CASE(
    "idle: who sleeps for at most 10 ms is waited for punctually, also behind an earlier one, and the latest counts") {
  weft::run(
      [] {
        const rt::timer_heap& timers = rt::sched.all_ps[0].load()->timers;
        const auto sleep_in_background = [](weft::wait_group& w, std::chrono::milliseconds d) {
          w.go([d] { weft::sleep(d); });
          weft::yield();
        };
        weft::wait_group w;
        sleep_in_background(w, 4ms);
        const rt::nanos first = timers.punctual_until();
        sleep_in_background(w, 9ms);  // not the earliest
        const rt::nanos second = timers.punctual_until();
        CHECK(second > first + rt::millisecond);
        sleep_in_background(w, 1ms);  // the earliest, and not the latest
        CHECK(timers.punctual_until() == second);
        w.wait();
      },
      {.procs = 1});
}

// overdue_in_ring (turns.cpp). Otherwise the goroutine that is next would go behind one that was put there just now.
TEST_CASE("dispatch: what lies in the ring has not waited since the P's last look if that found it empty") {
  weft::run(
      [] {
        weft::sleep(1ms);  // a timer is due, so the P looks
        rt::P* p = rt::this_m()->p.load(rt::relaxed);
        p->ring_waits_since = 1;  // as if that was long ago
        weft::wait_group w;
        std::vector<int> order;
        for (int i = 0; i < 2; ++i) w.go([&, i] { order.push_back(i); });
        p->next_look.store(1, rt::relaxed);
        w.wait();
        CHECK(order == std::vector<int>{1, 0});
      },
      {.procs = 1});
}
