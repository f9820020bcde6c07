// Timers and tickers: a channel and a timer of the heaps, tied together by a sequence number.
//
// The promise is Go 1.23's: after stop() or reset() has returned, no value of the earlier setting is received. The
// function of a timer runs without any lock of ours; it takes the channel's lock and sends only if the sequence number
// it was armed with is still the present one. stop and reset change that number, under the same lock, and drop a value
// that was sent and not received. Whether the setting's value was received is known under that lock, too: `armed`
// (nothing was sent yet) or a value in the buffer mean that it was not.

#include "weft/time.hpp"

#include "api/src/chan_core.hpp"
#include "api/src/support.hpp"

#include <cerrno>
#include <ctime>
#include <new>

namespace weft::detail {

void sleep_until_ns(std::int64_t deadline) {
  rt::runtime_scope scope;
  if (scope.m()) {
    if (deadline <= rt::nanotime()) return;
    if (deadline == rt::forever) {
      scope.resumed_on(rt::park(scope.m(), nullptr, nullptr, rt::wait_reason::sleep));
    } else {
      scope.resumed_on(rt::sleep_until(scope.m(), deadline));
    }
    return;
  }
  if (deadline <= 0) return;
  timespec ts{static_cast<time_t>(deadline / rt::second), static_cast<long>(deadline % rt::second)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, nullptr) == EINTR) {}
}

void sleep_ns(std::int64_t ns) {
  if (ns > 0) sleep_until_ns(deadline_after(ns));
}

class timer_core {
 public:
  explicit timer_core(std::int64_t period_ns) : period(period_ns), chan(chan_make(element_of<time_point>, 1)) {
    chan->is_timer = true;
    node.owner = this;
    node.function = fire;
    node.arg = this;
    node.dispose = [](rt::timer* t) noexcept { delete static_cast<link*>(t)->owner; };
  }
  ~timer_core() { chan_release(chan); }

  // Under chan->mutex. The value of the present setting was not received; it will not be.
  bool disarm() noexcept {
    bool pending = armed || chan->count.load(rt::relaxed) > 0;
    armed = false;
    ++seq;
    while (chan->count.load(rt::relaxed) > 0) chan->drop_head();
    return pending;
  }

  // Under chan->mutex, so that of two resets at once the later number is armed last.
  void arm(rt::M* m, std::int64_t ns) {
    if (ns >= never_ns) {
      armed = true;
      rt::del_timer(&node);
      return;
    }
    rt::rearm_timer(m, &node, rt::saturating_add(rt::nanotime(), ns < 0 ? 0 : ns), period >= never_ns ? 0 : period,
                    fire, this, seq);
    armed = true;
  }

  static void fire(void* self, std::uint64_t armed_seq, rt::nanos due) noexcept {
    auto* t = static_cast<timer_core*>(self);
    waiter* to_wake = nullptr;
    {
      rt::lock_guard hold(t->chan->mutex);
      if (armed_seq != t->seq || !t->armed) return;  // stopped or reset meanwhile
      if (t->period == 0) t->armed = false;
      time_point value{std::chrono::nanoseconds(due)};
      (void)t->chan->send_now(&value, &to_wake);  // a pending tick is not doubled
    }
    if (to_wake) wake(to_wake);
  }

  struct link : rt::timer {
    timer_core* owner = nullptr;
  };

  // The handles share one reference to the node, the heap holds another; the last one deletes this.
  rt::atomic<std::uint32_t> handles{1};
  link node;
  std::int64_t period;  // under chan->mutex from here on
  std::uint64_t seq = 0;
  bool armed = false;
  chan_core* const chan;
};

timer_core* timer_make(std::int64_t ns, std::int64_t period_ns) {
  rt::throw_if_not_running("a timer");
  auto t = std::make_unique<timer_core>(period_ns);
  rt::runtime_scope scope;
  rt::lock_guard hold(t->chan->mutex);
  t->arm(scope.m(), ns);
  return t.release();
}

void timer_retain(timer_core* t) noexcept { t->handles.fetch_add(1, rt::relaxed); }

void timer_release(timer_core* t) noexcept {
  if (t->handles.fetch_sub(1, rt::acq_rel) != 1) return;
  rt::runtime_scope scope;
  {
    rt::lock_guard hold(t->chan->mutex);
    t->disarm();
  }
  rt::del_timer(&t->node);
  t->node.release();
}

chan_core* timer_chan(timer_core* t) noexcept { return t->chan; }

bool timer_stop(timer_core* t) {
  rt::runtime_scope scope;
  rt::lock_guard hold(t->chan->mutex);
  bool pending = t->disarm();
  rt::del_timer(&t->node);
  return pending;
}

bool timer_reset(timer_core* t, std::int64_t ns, std::int64_t period_ns) {
  rt::throw_if_not_running("timer reset");
  rt::runtime_scope scope;
  rt::lock_guard hold(t->chan->mutex);
  bool pending = t->disarm();
  t->period = period_ns;
  t->arm(scope.m(), ns);
  return pending;
}

chan_core* after_chan(std::int64_t ns) {
  timer_core* t = timer_make(ns, 0);
  chan_core* c = t->chan;
  chan_retain(c);
  t->node.release();  // no handle: the heap's reference keeps it until it has fired
  return c;
}

}  // namespace weft::detail
