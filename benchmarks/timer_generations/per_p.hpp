// The third generation, Go 1.14 to 1.22, and weft's: a heap for each P, which the P itself looks after. Stopping or
// changing a timer only marks it (ten states). This is the code of timers/, called as the scheduler calls it.
//
// The locks are inside the library. So acquisitions are counted here, at the calls that are known to take a lock.
#pragma once

#include <deque>

#include "benchmarks/timer_generations/counted_lock.hpp"
#include "benchmarks/timer_generations/generation.hpp"
#include "timers/timer_heap.hpp"

namespace generations {

class per_p {
 public:
  static constexpr const char* name = "per_p";

  struct timer : rt::timer {
    timer_function user_function;
    void* user_arg;
  };

  explicit per_p(unsigned procs) : ps_(procs) {}

  ~per_p() {
    for (P& p : ps_) p.heap.clear();
  }

  static timer* make(timer_function function, void* arg) {
    auto* t = new timer;
    t->function = run;
    t->user_function = function;
    t->user_arg = arg;
    t->dispose = [](rt::timer* dead) noexcept { delete static_cast<timer*>(dead); };
    return t;
  }

  void add(unsigned p, timer* t, nanos when) {
    t->when = when;
    t->retain();  // for the heap
    ps_[p].heap.make_room();
    count(my_waits().acquired);
    static_cast<void>(ps_[p].heap.add(t));
  }

  bool stop(timer* t) { return rt::del_timer(t, nullptr); }

  bool reset(unsigned p, timer* t, nanos when) {
    // acquire is not needed: the owner calls this, and only the owner takes the timer out of these two states.
    rt::timer_status s = t->status.load(rt::relaxed);
    if (s == rt::timer_status::no_status || s == rt::timer_status::removed) count(my_waits().acquired);
    return rt::change_timer(ps_[p].heap, t, {when, 0, run, 0}).was_pending;
  }

  nanos fire(unsigned p, nanos now) {
    rt::timer_heap& h = ps_[p].heap;
    nanos next = h.wake_when();
    if (next == 0 || (now < next && !h.worth_rebuilding(h.size()))) return next;
    count(my_waits().acquired);
    bool ran = false;
    return h.check(now, true, &ran);
  }

  static void drop(timer* t) { t->release(); }

 private:
  struct alignas(rt::cache_line) P {
    rt::timer_heap heap;
  };

  // Counts an acquisition, since check() takes the lock again after each function.
  static void run(rt::timer* due_timer, std::uint64_t seq, nanos due) noexcept {
    auto* t = static_cast<timer*>(due_timer);
    count(my_waits().acquired);
    t->user_function(t->user_arg, seq, due);
  }

  std::deque<P> ps_;
};

}  // namespace generations
