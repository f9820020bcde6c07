// The gate's trials (sysmon/gate.cpp): what becomes of a newcomer that has lost its P, and of the turn with it. The
// test takes sysmon's looks, and says what the kernel tells about the thread.
//
// Kills these mutants (tests/mutants): gate-*, newcomers-next-*, newcomers-queued-begins, newcomers-suspect-is-next.

#include "sysmon/gate.hpp"
#include "sched/enter.hpp"
#include "sched/newcomers.hpp"
#include "sysmon/thread_state.hpp"
#include "tests/go/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/no_descriptors.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <unistd.h>
#include <utility>

using namespace weft::test;
namespace rt = weft::rt;

namespace {

constexpr int no_thread = -7;
rt::thread_does does;
rt::nanos used;

// A trial beside as many hogs as it takes to close the gate. Main keeps its P, so that sysmon's own gate has nothing to
// look at.
class court {
 public:
  explicit court(std::uint32_t hogs_per_p = 6) : hogs_(hogs_per_p * rt::sched.procs.load(rt::relaxed)) {
    rt::sched.hogs.fetch_add(hogs_, rt::relaxed);
    does = rt::thread_does::compute;
    used = 5 * rt::millisecond;
    defendant_.tid = no_thread;
    CHECK(rt::withhold_turn());  // the newcomer had the turn, and now the gate has it
    gate_.look(now_, true, {&defendant_, defendant_.regained, &kind_, true}, false);
  }
  ~court() {
    rt::sched.hogs.fetch_sub(hogs_, rt::relaxed);
    threads_run_short(false);
    look_after(0);
    CHECK(somebody_may_begin());
    CHECK(!is_suspect());
    CHECK(!rt::sched.newcomers_wait.load(rt::relaxed));
  }

  void look_after(rt::nanos t) {
    now_ += t;
    gate_.look(now_, false, {}, false);
  }
  // Another newcomer has begun, and is in a call.
  void another_blocks() {
    CHECK(rt::withhold_turn());
    gate_.look(now_, false, {}, true);
  }
  // A suspect that is next may begin without the turn, also while others wait.
  static bool suspects_begin_at_once() {
    rt::lock_guard hold(rt::sched.mutex);
    return rt::sched.suspects_at_once;
  }
  // Two others, which had begun without the turn, lose their Ps. Both are of this kind.
  void others_lose_their_ps(rt::M* a, rt::M* b, const void* kind) {
    gate_.look(now_, true, {a, a->regained, kind, false}, false);
    gate_.look(now_, true, {b, b->regained, kind, false}, false);
  }
  void comes_by() { ++defendant_.regained; }
  void is_known() { rt::suspect(&kind_); }
  void threads_run_short(bool yes) {
    rt::lock_guard hold(rt::sched.mutex);
    rt::sched.live_ms -= std::exchange(more_threads_, yes ? rt::sched.options.max_threads : 0);
    rt::sched.live_ms += more_threads_;
  }

  bool is_suspect() const { return is_suspect(&kind_); }
  static bool is_suspect(const void* kind) {
    rt::lock_guard hold(rt::sched.mutex);
    return std::find(rt::sched.hog_kinds.begin(), rt::sched.hog_kinds.end(), kind) != rt::sched.hog_kinds.end();
  }
  static bool somebody_may_begin() { return rt::sched.turn_is_free.load(rt::relaxed); }
  static bool suspects_wait() { return rt::sched.suspects_wait.load(rt::relaxed); }

 private:
  weft::no_preemption alone_;
  const std::uint32_t hogs_;
  rt::gate gate_;
  rt::M defendant_;
  const char kind_ = 0;
  rt::nanos now_ = 1000 * rt::second;
  std::uint32_t more_threads_ = 0;
};

// A time after which one more look does not bring a verdict yet.
constexpr rt::nanos a_look = 10 * rt::millisecond;

}  // namespace

extern "C" rt::thread_does __real__ZN4weft2rt14look_at_threadEi(int);
extern "C" rt::thread_does __wrap__ZN4weft2rt14look_at_threadEi(int tid) {
  return tid == no_thread ? does : __real__ZN4weft2rt14look_at_threadEi(tid);
}

extern "C" rt::nanos __real__ZN4weft2rt11thread_timeEi(int);
extern "C" rt::nanos __wrap__ZN4weft2rt11thread_timeEi(int tid) {
  return tid == no_thread ? used : __real__ZN4weft2rt11thread_timeEi(tid);
}

TEST_CASE("gate: one that waits for a processor is on trial, and nobody begins meanwhile") {
  weft::run([] {
    court c;
    for (int i = 0; i < 50; ++i) {
      CHECK(!c.somebody_may_begin());
      CHECK(!c.is_suspect());
      used += 3 * rt::microsecond;
      c.look_after(a_look);
    }
    does = rt::thread_does::sleep;
    c.look_after(a_look);
    CHECK(c.somebody_may_begin());
    CHECK(!c.is_suspect());
    CHECK(!c.suspects_wait());
  });
}

TEST_CASE("gate: one that cannot be looked at is on trial, as one that waits for a processor") {
  weft::run([] {
    court c;
    does = rt::thread_does::unknown;
    used += 199 * rt::microsecond;
    c.look_after(a_look);
    CHECK(!c.somebody_may_begin());
    CHECK(!c.is_suspect());
    used += rt::microsecond;
    c.look_after(a_look);
    CHECK(c.is_suspect());
  });
}

TEST_CASE("gate: one that cannot be looked at, and uses no processor for 50 ms, blocks") {
  weft::run([] {
    court c;
    does = rt::thread_does::unknown;
    for (int i = 0; i < 4; ++i) {
      used += 10 * rt::microsecond;
      c.look_after(a_look);
      CHECK(!c.somebody_may_begin());
    }
    c.look_after(a_look);
    CHECK(c.somebody_may_begin());
    CHECK(!c.is_suspect());
  });
}

// At first they count as ones that compute.
TEST_CASE("gate: goroutines that block while no descriptor is left do not keep others from beginning") {
  weft::run(
      [] {
        constexpr int blocked = 16;
        std::atomic<int> blocking{0}, done{0};
        int ends[2];
        REQUIRE(::pipe(ends) == 0);
        const no_descriptors none;
        for (int i = 0; i < blocked; ++i) {
          weft::go([&] {
            ++blocking;
            char c;
            if (::read(ends[0], &c, 1) == 1) --blocking;
          });
        }
        // Each gives its P to the next one when that P is taken from it.
        REQUIRE(eventually([&] { return blocking == blocked; }));
        CHECK(eventually([] { return !rt::sched.newcomers_wait.load(rt::relaxed); }, 1s * slowdown));
        for (int i = 0; i < 20; ++i) weft::go([&] { ++done; });
        CHECK(eventually([&] { return done == 20; }));
        CHECK(::write(ends[1], std::string(blocked, 'x').data(), blocked) == blocked);
        CHECK(eventually([&] { return blocking == 0; }));
        for (int fd : ends) ::close(fd);
      },
      {.procs = 2});
}

TEST_CASE("gate: one that uses the processor for 200 us computes, and the next of its kind waits for 10 ms") {
  weft::run([] {
    court c;
    used += 199 * rt::microsecond;
    c.look_after(a_look);
    CHECK(!c.is_suspect());
    used += rt::microsecond;
    c.look_after(a_look);
    CHECK(c.is_suspect());
    CHECK(c.suspects_wait());
    CHECK(c.somebody_may_begin());  // a goroutine of another kind
    c.look_after(9 * rt::millisecond);
    CHECK(c.suspects_wait());
    c.look_after(rt::millisecond);
    CHECK(!c.suspects_wait());
    CHECK(c.is_suspect());
  });
}

TEST_CASE("gate: the next of a kind waits 10 ms longer for each beyond six on each P, for a second at most") {
  for (auto [hogs_per_p, wait] :
       {std::pair{12u, 70 * rt::millisecond}, {90u, 850 * rt::millisecond}, {300u, rt::second}}) {
    CAPTURE(hogs_per_p);
    weft::run([n = hogs_per_p, wait = wait] {
      court c(n);
      c.is_known();
      used += rt::second;
      c.look_after(a_look);
      CHECK(c.somebody_may_begin());
      c.look_after(wait - rt::millisecond);
      CHECK(c.suspects_wait());
      c.look_after(rt::millisecond);
      CHECK(!c.suspects_wait());
    });
  }
}

TEST_CASE("gate: a trial takes no longer than a second") {
  weft::run([] {
    court c;
    c.look_after(999 * rt::millisecond);
    CHECK(!c.somebody_may_begin());
    CHECK(!c.is_suspect());
    c.look_after(rt::millisecond);
    CHECK(c.somebody_may_begin());
    CHECK(c.is_suspect());
  });
}

TEST_CASE("gate: one that came by is acquitted, and with it all of its kind") {
  weft::run([] {
    court c;
    c.is_known();
    c.comes_by();
    used += rt::second;
    c.look_after(a_look);
    CHECK(c.somebody_may_begin());
    CHECK(!c.is_suspect());
    CHECK(!c.suspects_wait());
  });
}

TEST_CASE("gate: while threads run short nobody begins, whatever the verdict; 10 ms after that, others than suspects") {
  for (bool computes : {false, true}) {
    CAPTURE(computes);
    weft::run([&] {
      court c;
      c.threads_run_short(true);
      used += computes * rt::second;
      does = computes ? rt::thread_does::compute : rt::thread_does::sleep;
      for (int i = 0; i < 100; ++i) {
        c.look_after(a_look);
        CHECK(!c.somebody_may_begin());
      }
      CHECK(c.is_suspect() == computes);
      c.threads_run_short(false);
      c.look_after(a_look);
      CHECK(c.somebody_may_begin());
    });
  }
}

TEST_CASE("gate: threads run short while the next of a kind waits: others wait until they do not, and no longer") {
  weft::run([] {
    court c(7);  // the next of its kind waits for 20 ms
    used += rt::second;
    c.look_after(a_look);
    CHECK(c.somebody_may_begin());
    c.threads_run_short(true);
    c.look_after(5 * rt::millisecond);
    CHECK(!c.somebody_may_begin());
    c.threads_run_short(false);
    c.look_after(a_look);
    CHECK(c.somebody_may_begin());
    CHECK(c.suspects_wait());
  });
}

TEST_CASE("gate: one that blocks in a call gives the turn to the next, but not while threads run short") {
  weft::run([] {
    court c;
    does = rt::thread_does::sleep;
    c.look_after(a_look);
    CHECK(c.somebody_may_begin());
    c.another_blocks();
    CHECK(c.somebody_may_begin());
    c.threads_run_short(true);
    c.another_blocks();
    CHECK(!c.somebody_may_begin());
    c.threads_run_short(false);
    c.look_after(a_look);
    CHECK(c.somebody_may_begin());
  });
}

TEST_CASE(
    "gate: one that began without the turn is tried, unless another one is, and nobody begins by turns meanwhile") {
  weft::run([] {
    court c;
    rt::M a, b;
    a.tid = b.tid = no_thread;
    const char kind = 0;
    c.others_lose_their_ps(&a, &b, &kind);
    used += rt::second;
    c.look_after(a_look);
    CHECK(c.is_suspect());
    CHECK(!c.is_suspect(&kind));
    CHECK(c.somebody_may_begin());

    c.others_lose_their_ps(&a, &b, &kind);
    CHECK(!c.somebody_may_begin());
    ++b.regained;
    c.look_after(a_look);
    CHECK(!c.somebody_may_begin());
    used += rt::second;
    c.look_after(a_look);
    CHECK(c.is_suspect(&kind));
    CHECK(c.somebody_may_begin());
  });
}

TEST_CASE(
    "gate: after one that had begun without the turn and lost its P, suspects do not begin so until they need not "
    "wait") {
  weft::run([] {
    court c;
    rt::M a, b;
    a.tid = b.tid = no_thread;
    const char kind = 0;
    CHECK(court::suspects_begin_at_once());
    c.others_lose_their_ps(&a, &b, &kind);
    CHECK(!court::suspects_begin_at_once());
    used += rt::second;
    c.look_after(a_look);
    CHECK(c.is_suspect());
    CHECK(c.suspects_wait());
    CHECK(!court::suspects_begin_at_once());
    c.look_after(rt::second);
    CHECK(!c.suspects_wait());
    CHECK(court::suspects_begin_at_once());
  });
}

TEST_CASE("gate: when four have lost their Ps that had begun without the turn, all wait for the end of the trial") {
  weft::run([] {
    court c;
    rt::M a, b;
    a.tid = b.tid = no_thread;
    const char kind = 0;
    auto all_wait = [] {
      rt::lock_guard hold(rt::sched.mutex);
      return rt::sched.all_newcomers_wait;
    };
    c.others_lose_their_ps(&a, &b, &kind);
    c.look_after(a_look);
    CHECK(!all_wait());
    c.others_lose_their_ps(&a, &b, &kind);
    c.look_after(a_look);
    CHECK(all_wait());
    does = rt::thread_does::sleep;
    c.look_after(a_look);
    CHECK(!all_wait());
    CHECK(c.somebody_may_begin());
  });
}

TEST_CASE(
    "gate: that it is open ends the trial of one that had no turn, whose thread may be gone when it closes again") {
  weft::run([] {
    weft::no_preemption alone;
    rt::gate gate;
    rt::M m;
    m.tid = no_thread;
    const char kind = 0;
    CHECK(rt::withhold_turn());  // another newcomer has it
    gate.look(1000 * rt::second, true, {&m, m.regained, &kind, false}, false);
    rt::give_turn_back();
    rt::lock_guard hold(rt::sched.mutex);
    CHECK(rt::sched.kind_on_trial == nullptr);
  });
}

namespace {

// Runs `steps` while newcomers wait and none begins by the turn. Main keeps the only P while it is in a step.
void while_newcomers_wait(const std::function<void()>& steps) {
  weft::run(
      [&] {
        CHECK(rt::withhold_turn());
        rt::make_newcomers_wait();
        steps();
        rt::let_newcomers_begin();
        rt::give_turn_back();
      },
      {.procs = 1});
}

// All are started from one place, which the goroutine reports in `kind`.
struct started {
  std::atomic<bool> begun{false};
  const void* kind = nullptr;
  weft::event over;
  [[gnu::noinline]] void go() {
    weft::go([this] {
      kind = rt::this_m()->g->spawn_pc;
      begun = true;
      over.set();
    });
  }
};

}  // namespace

TEST_CASE("newcomers: who is next begins without the turn, the others do not") {
  while_newcomers_wait([] {
    started first, second;
    first.go();
    second.go();
    second.over.wait();
    CHECK(!first.begun);
    weft::sleep(a_while);
    CHECK(!first.begun);
    rt::give_turn_back();
    first.over.wait();
    CHECK(rt::withhold_turn());
  });
}

TEST_CASE(
    "newcomers: who is next needs the turn if one of its kind is on trial, or if such a suspect has lost its P, or if "
    "all shall wait") {
  while_newcomers_wait([] {
    started known;
    known.go();
    known.over.wait();
    REQUIRE(known.kind);
    started on_trial, suspected, suspected_next, waits;
    rt::put_on_trial(known.kind);
    on_trial.go();
    weft::sleep(a_while);
    CHECK(!on_trial.begun);
    rt::suspect(known.kind);
    rt::make_suspects_wait(false);
    for (int i = 0; i < 3; ++i) {
      started answers;
      answers.go();
      answers.over.wait();
    }
    suspected.go();
    suspected_next.go();
    suspected_next.over.wait();
    CHECK(!suspected.begun);
    rt::no_suspect_at_once();
    started computes;
    computes.go();
    weft::sleep(a_while);
    CHECK(!computes.begun);
    rt::let_suspects_begin();
    started answers_again;
    answers_again.go();
    answers_again.over.wait();
    CHECK(!computes.begun);
    rt::acquit(known.kind);
    rt::make_suspects_wait(true);
    waits.go();
    weft::sleep(a_while);
    CHECK(!waits.begun);
    rt::let_suspects_begin();
    started at_last;
    at_last.go();
    at_last.over.wait();
    CHECK(!waits.begun);
    rt::give_turn_back();
    for (started* s : {&on_trial, &suspected, &computes, &waits}) s->over.wait();
    CHECK(rt::withhold_turn());
  });
}
