// The alternative: a hierarchical timing wheel for each P, with a lock. It has six levels of 64 slots; a slot of level
// L is 64^L ticks long. A timer lies in the lowest level that tells its tick from the current one: all higher digits
// (base 64) of the two ticks are the same. When a slot of a higher level begins, its timers move down. Each level has a
// word of bits that says which slots hold timers. So the next slot to look at is found at once, and no thread has to
// tick.
//
// All operations are O(1), but times are rounded up to ticks of 2^16 ns (65.5 us).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <deque>

#include "benchmarks/timer_generations/counted_lock.hpp"
#include "benchmarks/timer_generations/generation.hpp"

namespace generations {

class wheel {
  class level_set;

  // A link of a doubly linked ring. Each slot is a ring: a link that is no timer, and the timers in the slot.
  struct link {
    link* next = this;
    link* before = this;

    link() = default;
    link(const link&) = delete;
    link& operator=(const link&) = delete;

    bool alone() const { return next == this; }
    void insert_before(link* l) {
      next = l;
      before = l->before;
      before->next = l->before = this;
    }
    void leave() {
      before->next = next;
      next->before = before;
      next = before = this;
    }
  };

 public:
  static constexpr const char* name = "wheel";

  struct timer : link {
    timer_function function = nullptr;
    void* arg = nullptr;
    nanos when = 0;             // under the lock of its wheel, as are the fields below
    level_set* home = nullptr;  // the wheel of the P that armed it first; written by its owner
    unsigned level = 0;
    unsigned slot = 0;
  };

  explicit wheel(unsigned procs) : ps_(procs) {}

  static timer* make(timer_function function, void* arg) {
    auto* t = new timer;
    t->function = function;
    t->arg = arg;
    return t;
  }

  void add(unsigned p, timer* t, nanos when) {
    if (!t->home) t->home = &ps_[p];
    t->home->set(t, when);
  }

  bool stop(timer* t) { return t->home && t->home->stop(t); }

  bool reset(unsigned p, timer* t, nanos when) {
    if (!t->home) t->home = &ps_[p];
    return t->home->set(t, when);
  }

  nanos fire(unsigned p, nanos now) { return ps_[p].fire(now); }
  static void drop(timer* t) { delete t; }

 private:
  using ticks = std::uint64_t;
  static constexpr unsigned tick_shift = 16, digit = 6, levels = 6, slots = 1u << digit;
  static constexpr ticks last_tick = (ticks{1} << (digit * levels)) - 1;  // 52 days

  class alignas(rt::cache_line) level_set {
   public:
    bool set(timer* t, nanos when) {
      lock_.acquire_lock();
      bool was_armed = !t->alone();
      if (was_armed) take_out(t);
      t->when = when;
      ticks at = put(t);
      nanos due = instant(at);
      nanos next = next_.load(rt::relaxed);
      if (next == 0 || due < next) next_.store(due, rt::relaxed);
      lock_.release_lock();
      return was_armed;
    }

    bool stop(timer* t) {
      lock_.acquire_lock();
      bool was_armed = !t->alone();
      if (was_armed) take_out(t);
      lock_.release_lock();
      return was_armed;
    }

    nanos fire(nanos now) {
      nanos next = next_.load(rt::relaxed);
      if (next == 0 || now < next) return next;
      lock_.acquire_lock();
      ticks until = static_cast<ticks>(now - origin_) >> tick_shift;
      place first;
      while (find_first(first) && first.begin <= until) {
        current_ = first.begin;
        if (first.level > 0) {
          move_down(first);
        } else {
          run(first);
        }
      }
      if (current_ < until) current_ = until;
      next = occupied() ? instant(first.begin) : 0;
      next_.store(next, rt::relaxed);
      lock_.release_lock();
      return next;
    }

   private:
    struct place {
      unsigned level = 0;
      unsigned slot = 0;
      ticks begin = 0;
    };

    nanos instant(ticks t) const { return origin_ + static_cast<nanos>(t << tick_shift); }

    // Rounds up, so that no timer fires early.
    ticks tick_of(nanos when) const {
      nanos d = when - origin_ + (nanos{1} << tick_shift) - 1;
      return d < 0 ? 0 : std::min(static_cast<ticks>(d) >> tick_shift, last_tick);
    }

    // Puts t into the wheel. Returns the tick for which it is there: its own, or the current one if that is later.
    ticks put(timer* t) {
      ticks at = std::max(tick_of(t->when), current_);
      t->level = at == current_ ? 0 : (static_cast<unsigned>(std::bit_width(at ^ current_)) - 1) / digit;
      t->slot = static_cast<unsigned>(at >> (digit * t->level)) % slots;
      t->insert_before(&slots_[t->level][t->slot]);
      bits_[t->level] |= std::uint64_t{1} << t->slot;
      return at;
    }

    void take_out(timer* t) {
      t->leave();
      if (slots_[t->level][t->slot].alone()) bits_[t->level] &= ~(std::uint64_t{1} << t->slot);
    }

    bool occupied() const {
      for (std::uint64_t b : bits_) {
        if (b != 0) return true;
      }
      return false;
    }

    // Finds the first slot that holds a timer. Any slot of a lower level begins before any slot of a higher one.
    bool find_first(place& p) const {
      for (unsigned l = 0; l < levels; ++l) {
        if (bits_[l] == 0) continue;
        p.level = l;
        p.slot = static_cast<unsigned>(std::countr_zero(bits_[l]));
        ticks higher_digits = current_ >> (digit * (l + 1)) << (digit * (l + 1));
        p.begin = higher_digits | ticks{p.slot} << (digit * l);
        return true;
      }
      return false;
    }

    void move_down(const place& p) {
      link& slot = slots_[p.level][p.slot];
      while (!slot.alone()) {
        auto* t = static_cast<timer*>(slot.next);
        take_out(t);
        put(t);
      }
    }

    void run(const place& p) {
      link& slot = slots_[0][p.slot];
      while (!slot.alone()) {
        auto* t = static_cast<timer*>(slot.next);
        take_out(t);
        timer_function function = t->function;
        void* arg = t->arg;
        nanos due = t->when;
        lock_.release_lock();
        function(arg, 0, due);
        lock_.acquire_lock();
      }
    }

    counted_lock lock_;
    const nanos origin_ = rt::nanotime();  // where tick 0 begins
    ticks current_ = 0;                    // no timer is left of the ticks before
    std::array<std::uint64_t, levels> bits_{};
    std::array<std::array<link, slots>, levels> slots_;
    rt::atomic<nanos> next_{0};  // no timer is due before; 0: there is none. Written under the lock
  };

  std::deque<level_set> ps_;
};

}  // namespace generations
