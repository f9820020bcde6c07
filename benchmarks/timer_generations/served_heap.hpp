// A heap with one lock and a thread of its own, the timerproc, which sleeps until the first timer is due and runs the
// due timers. A timer that is stopped leaves the heap at once, so a timer knows its index. The entries are pointers, as
// they were in Go up to 1.13: comparing two entries reads the timers.
#pragma once

#include <cstddef>
#include <thread>

#include "benchmarks/timer_generations/counted_lock.hpp"
#include "benchmarks/timer_generations/four_ary_heap.hpp"
#include "benchmarks/timer_generations/generation.hpp"
#include "runtime/note.hpp"

namespace generations {

class served_heap;

struct served_timer {
  timer_function function;
  void* arg;
  nanos when = 0;
  served_heap* heap = nullptr;  // null: never armed. Written by add
  std::size_t index = 0;        // under the heap's lock
  bool armed = false;           // likewise
};

class alignas(rt::cache_line) served_heap {
 public:
  served_heap() = default;
  served_heap(const served_heap&) = delete;
  served_heap& operator=(const served_heap&) = delete;

  ~served_heap() {
    if (!timerproc_.joinable()) return;
    lock_.acquire_lock();
    ending_ = true;
    wake_timerproc();
    lock_.release_lock();
    timerproc_.join();
  }

  void add(served_timer* t, nanos when) {
    lock_.acquire_lock();
    t->when = when;
    t->heap = this;
    t->armed = true;
    heap_.push({t});
    if (t->index == 0) wake_timerproc();
    if (!timerproc_.joinable()) timerproc_ = std::thread([this] { serve(); });
    lock_.release_lock();
  }

  bool stop(served_timer* t) {
    lock_.acquire_lock();
    bool was_armed = t->armed;
    if (was_armed) {
      heap_.remove(t->index);
      t->armed = false;
    }
    lock_.release_lock();
    return was_armed;
  }

 private:
  struct entry {
    served_timer* t;
    nanos when() const { return t->when; }
    void at(std::size_t i) const { t->index = i; }
  };

  // Called under the lock.
  void wake_timerproc() {
    if (!sleeping_) return;
    sleeping_ = false;
    note_.wakeup();
  }

  // Runs on the timerproc.
  void serve() {
    lock_.acquire_lock();
    for (;;) {
      run_due();
      if (ending_) break;  // after run_due, which releases the lock for a while
      nanos next = heap_.empty() ? rt::forever : heap_.front().when();
      sleeping_ = true;
      note_.clear();
      lock_.release_lock();
      note_.sleep_until(next);
      lock_.acquire_lock();
      sleeping_ = false;
    }
    lock_.release_lock();
  }

  // Called under the lock, which is released while a function runs.
  void run_due() {
    nanos now = rt::nanotime();
    while (!heap_.empty() && heap_.front().when() <= now) {
      served_timer* t = heap_.front().t;
      heap_.remove(0);
      t->armed = false;
      timer_function function = t->function;
      void* arg = t->arg;
      nanos due = t->when;
      lock_.release_lock();
      function(arg, 0, due);
      lock_.acquire_lock();
    }
  }

  counted_lock lock_;
  four_ary_heap<entry> heap_;
  bool sleeping_ = false;  // the timerproc sleeps on note_, and nobody has woken it
  bool ending_ = false;
  rt::note note_;
  std::thread timerproc_;  // started by the first add
};

}  // namespace generations
