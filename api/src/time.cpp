// Timers and tickers: a channel and a timer in a heap, tied together by a sequence number.
//
// As in Go 1.23, the timer is in a heap only while that matters: it is put there when somebody is about to wait for its
// channel. A call that only looks at the channel reads the clock, and sends itself what is due (timer_catch_up). So a
// timer that nobody waits for costs no heap operation, from its creation over any number of resets to its end. A timer
// may be left in a heap when nobody waits any more; a ticker leaves the heap at the first tick that nobody takes.
//
// The promise is Go 1.23's: after stop() or reset() has returned, no value of the earlier setting is received. A
// timer's function runs without any lock of ours. It takes the channel's lock, and sends only if the sequence number it
// was armed with is still the present one. stop and reset change that number under the same lock, and drop a value that
// was sent but not received. Whether the setting's value was received is known under that lock, too: it was not if
// `unsent` is set (nothing was sent yet), or if a value is in the buffer.

#include "weft/time.hpp"

#include "api/src/chan_core.hpp"
#include "api/src/support.hpp"
#include "sched/lifecycle.hpp"
#include "sched/park.hpp"
#include "sched/threads.hpp"
#include "sched/timing.hpp"
#include "timers/sleep_crowd.hpp"

#include <cerrno>
#include <ctime>
#include <new>

namespace weft::detail {

namespace {

void sleep_as_goroutine(rt::runtime_scope& scope, rt::sleep_end end) {
  if (end.at == rt::forever) {
    scope.resumed_on(rt::park(scope.m(), nullptr, nullptr, rt::wait_reason::sleep));
  } else {
    scope.resumed_on(rt::sleep_until(scope.m(), end));
  }
}

void sleep_as_thread(std::int64_t deadline) noexcept {
  if (deadline <= 0) return;
  timespec ts{static_cast<time_t>(deadline / rt::second), static_cast<long>(deadline % rt::second)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, nullptr) == EINTR) {}
}

}  // namespace

void sleep_until_ns(std::int64_t deadline) {
  rt::runtime_scope scope;
  if (!scope.m()) return sleep_as_thread(deadline);
  if (deadline > rt::nanotime()) sleep_as_goroutine(scope, {deadline});
}

void sleep_ns(std::int64_t ns) {
  if (ns <= 0) {
    answer_runtime_request();
    return;
  }
  rt::runtime_scope scope;
  std::int64_t deadline = clock_after(ns);  // by the clock itself: a sleep does expire
  if (!scope.m()) return sleep_as_thread(deadline);
  sleep_as_goroutine(scope, scope.m()->p.load(rt::relaxed)->sleeps.end_of(ns, deadline));
}

// Timer and channel in one block of memory. The channel's references keep the block; all handles together hold one of
// them. When the last reference is gone, the node is let go, and the block is freed as soon as no heap holds the node
// any more.
class timer_core {
 public:
  timer_core(std::int64_t ns, std::int64_t period_ns) noexcept
      : chan(element_of<time_point>, 1, sizeof(time_point), reinterpret_cast<std::byte*>(&slot)) {
    chan.belong_to(this);
    node.owner = this;
    node.dispose = [](rt::timer* t) noexcept { delete static_cast<heap_node*>(t)->owner; };
    set(ns, period_ns);
  }

  // All members below but fire are called under chan.mutex.

  void set(std::int64_t ns, std::int64_t period_ns) noexcept {
    when = instant_after(ns < 0 ? 0 : ns);
    period = period_ns >= never_ns ? 0 : period_ns;
    unsent = true;
  }

  // Ends the present setting. True if its value was not received; then it never will be.
  bool disarm() noexcept {
    bool pending = unsent || chan.count.load(rt::relaxed) > 0;
    unsent = false;
    ++seq;
    if (std::size_t n = chan.count.load(rt::relaxed); n > 0) chan.drop_head(n);
    return pending;
  }

  // True if a heap will call fire, or is calling it now and waits for the lock.
  bool will_fire() const noexcept {
    switch (node.status.load(rt::acquire)) {
      case rt::timer_status::no_status:
      case rt::timer_status::deleted:
      case rt::timer_status::removing:
      case rt::timer_status::removed: return false;
      default: return true;
    }
  }

  void put_into_heap() {
    if (when.at == rt::forever) {
      rt::stop_timer(rt::this_m(), &node);
    } else {
      rt::rearm_timer(rt::this_m(), &node, {when.due(), period, fire, seq});
    }
  }

  // Moves a ticker on to the first tick after now.
  void skip_to(rt::nanos now) noexcept {
    const rt::nanos late = now - when.at;
    if (late >= 0) when.at = rt::saturating_add(when.at, period * (1 + late / period));
  }

  // Returns the value that was due, `when`. From then on the next tick is due.
  time_point take_due(rt::nanos now) noexcept {
    time_point value{std::chrono::nanoseconds(when.at)};
    if (period == 0) {
      unsent = false;
    } else {
      skip_to(now);
    }
    return value;
  }

  // Sends the value that is due. If a tick is pending already, it does not become two.
  waiter* send(rt::nanos now) noexcept {
    time_point value = take_due(now);
    waiter* to_wake = nullptr;
    (void)chan.send_now(&value, &to_wake);
    return to_wake;
  }

  static void fire(rt::timer* fired, std::uint64_t fired_seq, rt::nanos) noexcept {
    timer_core* t = static_cast<heap_node*>(fired)->owner;
    waiter* to_wake;
    {
      rt::lock_guard hold(t->chan.mutex);
      // The timer was stopped or reset meanwhile, or a look at the channel has sent the value already. Below, the clock
      // decides, not the instant that the heap says was due: a ticker may have skipped ticks by a later look at the
      // clock than the heap's, and then `when` is ahead of the heap's instant.
      if (fired_seq != t->seq || !t->unsent) return;
      rt::nanos now = rt::nanotime();
      if (now < t->when.at) return;
      to_wake = t->send(now);
      if (!to_wake) rt::stop_timer(rt::this_m(), &t->node);  // nobody waits: a ticker's next tick need not be noticed
    }
    if (to_wake) wake(rt::this_m(), to_wake);
  }

  struct heap_node : rt::timer {
    timer_core* owner = nullptr;
  };

  rt::atomic<std::uint32_t> handles{1};
  heap_node node;
  chan_core chan;
  time_point slot;
  // under chan.mutex:
  instant when{0, 0};
  std::int64_t period = 0;  // 0: once
  std::uint64_t seq = 0;
  bool unsent = false;  // the value for `when` was not sent
};

void timer_catch_up(chan_core* c) noexcept {
  timer_core* t = c->timer;
  if (!t->unsent) return;
  // A waiter was here before, and has the heap send it the value. The exception is a foreign thread that waits across
  // the end of a run(): no heap does that for it, and it looks again by itself.
  const waiter* w = c->receivers.first_alive();
  if (w && (t->will_fire() || w->g->kind != rt::g_kind::foreign)) return;
  if (c->count.load(rt::relaxed) > 0) {
    if (t->period != 0) t->skip_to(rt::nanotime());  // ticks that were due while one was pending are missed
    return;
  }
  rt::nanos now = rt::nanotime();
  if (now < t->when.at) return;
  time_point value = t->take_due(now);
  c->push(0, &value);  // the caller takes it at once
}

std::uint64_t timer_begin_wait(chan_core* c) {
  timer_core* t = c->timer;
  const std::uint64_t run = rt::present_run();  // before put_into_heap: a later read may give the next run()'s number
  if (t->unsent && !t->will_fire()) t->put_into_heap();
  return run;
}

void timer_channel_gone(chan_core* c) noexcept {
  timer_core* t = c->timer;
  rt::runtime_scope scope;
  rt::stop_timer(scope.m(), &t->node);
  t->node.release();
}

timer_core* timer_make(std::int64_t ns, std::int64_t period_ns) {
  rt::throw_if_not_running("a timer");
  return new timer_core(ns, period_ns);
}

void timer_retain(timer_core* t) noexcept { t->handles.fetch_add(1, rt::relaxed); }

void timer_release(timer_core* t) noexcept {
  if (t->handles.load(rt::acquire) != 1 && t->handles.fetch_sub(1, rt::acq_rel) != 1) return;
  if (t->chan.references.load(rt::acquire) != 1) (void)timer_stop(t);
  chan_release(&t->chan);
}

chan_core* timer_chan(timer_core* t) noexcept { return &t->chan; }

bool timer_stop(timer_core* t) {
  rt::runtime_scope scope;
  rt::lock_guard hold(t->chan.mutex);
  bool pending = t->disarm();
  if (t->will_fire()) rt::stop_timer(scope.m(), &t->node);
  return pending;
}

bool timer_reset(timer_core* t, std::int64_t ns, std::int64_t period_ns) {
  rt::throw_if_not_running("timer reset");
  rt::runtime_scope scope;
  rt::lock_guard hold(t->chan.mutex);
  bool pending = t->disarm();
  t->set(ns, period_ns);
  if (t->will_fire() || !t->chan.receivers.looks_empty()) t->put_into_heap();
  return pending;
}

chan_core* after_chan(std::int64_t ns) { return &timer_make(ns, 0)->chan; }

}  // namespace weft::detail
