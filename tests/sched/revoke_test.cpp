// "revoke" (enter.hpp) and the P of a system call (syscall.cpp), with a taker that comes a thousand times as often as
// sysmon and stop-the-world would.

#include "sched/enter.hpp"
#include "sched/preempt.hpp"
#include "sched/proc.hpp"
#include "sched/syscall.hpp"
#include "tests/sched/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace weft::test;

namespace {

// What the M does while its P is being taken. The barrier, T2, calls it, under sched.mutex.
void (*meanwhile)(rt::M*, rt::P*) = nullptr;
rt::M* victim = nullptr;

// Takes a P as sysmon does (retake), whether its goroutine has run for long or not.
bool take(rt::P* p) {
  if (p->status.load(rt::acquire) == rt::p_status::syscall) {
    if (!rt::retake_syscall(p)) return false;
  } else {
    rt::lock_guard hold(rt::sched.mutex);
    if (!rt::detach_running(p)) return false;
  }
  rt::handoffp(p);
  return true;
}

// Tries to take the P of a goroutine that computes, while its M does `what`.
struct attempt {
  bool taken, still_its_own, revoked;
};
attempt take_while(void (*what)(rt::M*, rt::P*), void (*undo)(rt::M*, rt::P*)) {
  rt::lock_guard hold(rt::sched.mutex);
  rt::P* p = victim->p.load(rt::relaxed);
  if (!p) return {false, true, false};  // sysmon was faster
  meanwhile = what;
  bool taken = rt::detach_running(p);
  meanwhile = nullptr;
  undo(victim, p);
  return {taken, victim->p.load(rt::relaxed) == p && p->m.load(rt::relaxed) == victim,
          (victim->requests.load(rt::relaxed) & rt::request::revoked) != 0};
}

}  // namespace

extern "C" void __real__ZN4weft2rt13heavy_barrierEv();
extern "C" void __wrap__ZN4weft2rt13heavy_barrierEv() {
  __real__ZN4weft2rt13heavy_barrierEv();
  if (meanwhile) meanwhile(victim, victim->p.load(rt::relaxed));
}

// T3 must find that the P cannot be taken: what the M did meanwhile had not seen T1.
TEST_CASE("revoke: whoever takes a P looks again after the barrier") {
  weft::run(
      [] {
        std::atomic<bool> computes{false}, over{false};
        auto goroutine = weft::spawn([&] {
          victim = rt::this_m();
          computes = true;
          while (!over) {}
        });
        CHECK(eventually([&] { return computes.load(); }));
        attempt entered = take_while([](rt::M* m, rt::P*) { m->depth.store(1, rt::relaxed); },
                                     [](rt::M* m, rt::P*) { m->depth.store(0, rt::relaxed); });
        attempt left = take_while(
            [](rt::M* m, rt::P* p) {
              m->p.store(nullptr, rt::relaxed);
              p->m.store(nullptr, rt::relaxed);
              p->status.store(rt::p_status::syscall, rt::relaxed);
            },
            [](rt::M* m, rt::P* p) {
              m->p.store(p, rt::relaxed);
              p->m.store(m, rt::relaxed);
              p->status.store(rt::p_status::running, rt::relaxed);
            });
        over = true;
        goroutine.join();
        CHECK(!entered.taken);
        CHECK(entered.still_its_own);
        CHECK(!entered.revoked);
        CHECK(!left.taken);
        CHECK(left.still_its_own);
        CHECK(!left.revoked);
      },
      {.procs = 2});
}

// There is always a P to go on with, and an M in the poller. So no thread is woken, and the two meet very often.
TEST_CASE("revoke: nobody takes the P of an M that is in the runtime, and each take is found out") {
  weft::run(
      [] {
        const auto takes = static_cast<unsigned long>(fewer(3000));
        std::atomic<unsigned long> taken{0}, lost{0};
        std::atomic<bool> over{false};
        weft::func_timer somebody_polls = weft::after_func(1h, [] {});
        weft::sleep(a_moment);
        std::thread taker([&] {
          auto give_up = clock::now() + late;
          for (std::size_t i = 0; taken < takes && clock::now() < give_up; ++i) {
            if (rt::sched.idle_ps.load(rt::seq_cst) == 2) continue;  // an M comes for one, and needs the lock
            taken += take(rt::sched.all_ps[i % 2]);
          }
          over = true;
        });
        for (unsigned i = 0; !over; ++i) {
          if (i % 4 == 0) weft::blocking([] {});
          rt::runtime_scope scope;
          rt::P* p = scope.m()->p.load(rt::relaxed);
          for (int looks = 0; looks < 5; ++looks) rt::cpu_relax();
          if (!p || scope.m()->p.load(rt::relaxed) != p || p->m.load(rt::relaxed) != scope.m()) ++lost;
        }
        taker.join();
        somebody_polls.stop();
        INFO(taken << " taken");
        CHECK(lost == 0);
        CHECK(taken > 0);
        weft::yield();  // so that this goroutine has a P
        CHECK(rt::sched.detached_ms == 0);
      },
      {.procs = 2});
}
