// The fourth generation, Go 1.23: a heap for each P, and a lock for each timer in place of the ten states. Three bits
// describe how a timer stands to its heap:
//
//   heaped     it has an entry there
//   modified   the entry's time is stale
//   zombie     it is stopped, and the entry must be removed (only with heaped and modified)
//
// stop and reset take only the timer's lock and leave the entry as it is. The next thread that holds the heap's lock
// and looks at the entry puts it right. A heap's lock is taken before a timer's.
#pragma once

#include <deque>

#include "benchmarks/timer_generations/counted_lock.hpp"
#include "benchmarks/timer_generations/four_ary_heap.hpp"
#include "benchmarks/timer_generations/generation.hpp"

namespace generations {

class per_timer_lock {
  class heap;

 public:
  static constexpr const char* name = "per_timer_lock";

  struct timer {
    timer_function function;
    void* arg;

    counted_lock lock{rt::lock_rank::leaf};
    nanos when = 0;        // under lock. 0: not armed
    heap* home = nullptr;  // under lock. The heap that has an entry for it

    // Written under lock. Also read without it, by threads that look whether there is anything to do.
    rt::atomic<unsigned> bits{0};

    rt::atomic<unsigned> references{1};  // the owner's and the heap's

    void release() {
      if (references.fetch_sub(1, rt::acq_rel) == 1) delete this;
    }
  };

  explicit per_timer_lock(unsigned procs) : heaps_(procs) {}

  static timer* make(timer_function function, void* arg) { return new timer{function, arg}; }
  void add(unsigned p, timer* t, nanos when) { reset(p, t, when); }

  bool stop(timer* t) {
    t->lock.acquire_lock();
    bool was_armed = t->when != 0;
    unsigned bits = t->bits.load(rt::relaxed);
    if ((bits & (heaped | zombie)) == heaped) {
      t->home->zombies.fetch_add(1, rt::relaxed);
      t->bits.store(bits | modified | zombie, rt::release);
    }
    t->when = 0;
    t->lock.release_lock();
    return was_armed;
  }

  bool reset(unsigned p, timer* t, nanos when) {
    t->lock.acquire_lock();
    bool was_armed = t->when != 0;
    t->when = when;
    unsigned bits = t->bits.load(rt::relaxed);
    bool in_heap = bits & heaped;
    if (in_heap) {
      if (bits & zombie) t->home->zombies.fetch_sub(1, rt::relaxed);
      // The bit is set before the hint is lowered: a thread that takes the hint back sees the bit (heap::sweep).
      t->bits.store(heaped | modified, rt::release);
      t->home->note_changed(when);
    }
    t->lock.release_lock();
    if (!in_heap) heaps_[p].add(t);
    return was_armed;
  }

  nanos fire(unsigned p, nanos now) { return heaps_[p].check(now); }
  static void drop(timer* t) { t->release(); }

 private:
  static constexpr unsigned heaped = 1, modified = 2, zombie = 4;

  class alignas(rt::cache_line) heap {
   public:
    ~heap() {
      entries_.sweep([](entry& e) {
        e.t->release();
        return false;
      });
    }

    // Returns the earliest time at which something may be due; 0: there is none. Reads the hint before the head, since
    // sweep lowers the head before it takes the hint back.
    nanos wake_when() const { return earlier(change_.load(rt::acquire), head_.load(rt::acquire)); }

    void add(timer* t) {
      lock_.acquire_lock();
      clean_ends();
      t->lock.acquire_lock();
      t->home = this;
      t->references.fetch_add(1, rt::relaxed);
      t->bits.store(heaped, rt::release);
      entries_.push({t->when, t});
      t->lock.release_lock();
      publish_and_unlock();
    }

    nanos check(nanos now) {
      nanos next = wake_when();
      if (next == 0 || (now < next && !mostly_zombies())) return next;
      lock_.acquire_lock();
      nanos change = change_.load(rt::relaxed);
      if (change != 0 && change <= now) sweep();
      while (run_head(now)) {}
      if (mostly_zombies()) sweep();
      publish_and_unlock();
      return wake_when();
    }

    // Lowers the hint. Called under the timer's lock.
    void note_changed(nanos when) {
      nanos old = change_.load(rt::relaxed);
      while ((old == 0 || when < old) && !change_.compare_exchange_weak(old, when, rt::acq_rel, rt::relaxed)) {}
    }

    rt::atomic<unsigned> zombies{0};  // changed under the timer's lock

   private:
    struct entry {
      nanos due;
      timer* t;
      nanos when() const { return due; }
      void at(std::size_t) const {}
    };

    static nanos earlier(nanos a, nanos b) { return a == 0 || (b != 0 && b < a) ? b : a; }

    bool mostly_zombies() const { return zombies.load(rt::relaxed) > size_.load(rt::relaxed) / 4; }

    // The functions that follow are called under the heap's lock.

    void publish_and_unlock() {
      head_.store(entries_.empty() ? 0 : entries_.front().due, rt::release);
      size_.store(static_cast<unsigned>(entries_.size()), rt::relaxed);
      lock_.release_lock();
    }

    // Called under the timer's lock, too. Notes that the timer has no entry any more.
    static void leave(timer* t) {
      t->home = nullptr;
      t->bits.store(0, rt::release);
    }

    // Takes stopped timers out at both ends, and moves changed ones away from the head. A timer that is made and
    // stopped at once is often the last entry.
    void clean_ends() {
      while (!entries_.empty()) {
        if (!settle(entries_.size() - 1, entries_.back().t, zombie) && !settle(0, entries_.front().t, modified)) return;
      }
    }

    // If t, whose entry is the i-th, has this bit, puts the entry right or takes it out. False: t does not have the
    // bit.
    bool settle(std::size_t i, timer* t, unsigned bit) {
      if (!(t->bits.load(rt::acquire) & bit)) return false;
      t->lock.acquire_lock();
      unsigned bits = t->bits.load(rt::relaxed);
      if (bits & zombie) {
        zombies.fetch_sub(1, rt::relaxed);
        leave(t);
        entries_.remove(i);
      } else if (bits & bit) {
        t->bits.store(heaped, rt::release);
        entries_.replace_front({t->when, t});
      }
      t->lock.release_lock();
      if (bits & zombie) t->release();
      return bits & bit;
    }

    // Runs the first timer if it is due, or puts its entry right. True: something was done, so look again.
    bool run_head(nanos now) {
      if (entries_.empty()) return false;
      timer* t = entries_.front().t;
      if (settle(0, t, modified)) return true;
      if (entries_.front().due > now) return false;
      t->lock.acquire_lock();
      if (t->bits.load(rt::relaxed) & modified) {
        t->lock.release_lock();
        return true;
      }
      nanos due = t->when;
      timer_function function = t->function;
      void* arg = t->arg;
      t->when = 0;
      leave(t);
      entries_.remove(0);
      t->lock.release_lock();
      publish_and_unlock();
      function(arg, 0, due);
      t->release();
      lock_.acquire_lock();
      return true;
    }

    // In one pass over the heap, removes zombies and puts changed entries right.
    void sweep() {
      head_.store(wake_when(), rt::release);
      // acq_rel: a thread that lowered the hint before this exchange had set the bit before that, and this pass sees
      // the bit.
      change_.exchange(0, rt::acq_rel);
      entries_.sweep([this](entry& e) {
        if (!(e.t->bits.load(rt::acquire) & modified)) return true;
        timer* t = e.t;
        t->lock.acquire_lock();
        bool dead = t->bits.load(rt::relaxed) & zombie;
        if (dead) {
          zombies.fetch_sub(1, rt::relaxed);
          leave(t);
        } else {
          t->bits.store(heaped, rt::release);
          e.due = t->when;
        }
        t->lock.release_lock();
        if (dead) t->release();
        return !dead;
      });
      size_.store(static_cast<unsigned>(entries_.size()), rt::relaxed);
    }

    counted_lock lock_;
    four_ary_heap<entry> entries_;
    rt::atomic<nanos> head_{0};    // the first entry's time
    rt::atomic<nanos> change_{0};  // the hint: no changed timer is due before it
    rt::atomic<unsigned> size_{0};
  };

  std::deque<heap> heaps_;
};

}  // namespace generations
