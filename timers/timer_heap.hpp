// The timers of one P: a 4-ary heap of {when, timer}, with the lazy operations of Go 1.14.
//
// Stopping or changing a timer marks it (timer.hpp) and leaves its entry where it is; whoever next works on the heap
// puts it right: at the head when entries come due (run); everywhere, in one pass (rebuild), when a timer was made
// earlier and that time has come (adjust), or when more than half of the entries are stopped.
//
// Two hints are read without the lock, by those who decide how long to sleep:
//   head_when        when of the first entry, 0 if there is none
//   earliest_change  a time that no modified_earlier timer of this heap is before, 0 if none
// wake_when() is the smaller one. It may be too early (somebody looks in vain) but never too late:
//   - who makes a timer earlier (change_timer, no lock) lowers earliest_change BEFORE it publishes the state
//     modified_earlier;
//   - who clears earliest_change (rebuild, with the lock) first lowers head_when to the value it clears, clears by
//     compare-and-swap, and reads the states after that: a timer made earlier before the swap is folded into head_when,
//     one made earlier after it lowers the hint again. All four seq_cst: the changer takes the timer (modifying), then
//     reads the hint; if that is the value that the swap clears, the swap comes later, and the state is seen;
//   - who reads (wake_when, no lock) reads earliest_change first: if it sees the cleared hint, it sees the lowered head
//     (release/acquire on earliest_change);
//   - whoever lowers earliest_change has the sleeper told; whoever finds it as low already need not. An earlier
//     head_when is no excuse, as it may be a stopped timer's: the sleeper reads the old change; the change is lowered;
//     the stopped head is cleaned out, and head_when rises; the sleeper reads that: too late on both;
//   - head_when is set to its true value when the lock is released, and the count too, but while a function runs.
// The model of the states and the hints is tests/model/timer.pml.
#pragma once

#include "runtime/lock.hpp"
#include "timers/timer.hpp"
#include "timers/timer_entries.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace weft::rt {

// What a timer is armed for, and with.
struct timer_setting {
  nanos when;
  nanos period;  // 0: once
  timer_function function;
  std::uint64_t seq;
};

struct change_result {
  bool was_pending;
  bool earliest;  // who sleeps for the heap it is in now has to be told
};

// A wait that is no longer wants to end on time to the microsecond.
inline constexpr nanos punctual_wait = 10 * millisecond;

class timer_heap {
 public:
  timer_heap() = default;
  timer_heap(const timer_heap&) = delete;
  timer_heap& operator=(const timer_heap&) = delete;

  // --- no lock needed

  // The earliest time at which something may be due here; 0: nothing is.
  nanos wake_when() const noexcept;

  // Entries, stopped ones included.
  std::uint32_t size() const noexcept { return count_.load(relaxed); }

  // Entries that were stopped and not yet cleaned out. Rough, while others stop some, but not below zero: in this
  // order, who sees that one was taken out or armed anew sees that it was stopped.
  std::uint32_t deleted_count() const noexcept {
    const std::uint32_t out = taken_out_.load(acquire), elsewhere = stopped_.load(acquire);
    return elsewhere + stopped_here_.load(relaxed) - out;
  }

  // A pass looks at every entry. So for each that it takes out it looks at two, at most. Go's rule is a quarter: four.
  bool worth_rebuilding(std::size_t entries) const noexcept { return deleted_count() > entries / 2; }

  // Somebody waits for `when` who wants to be on time: a short sleep, a fast ticker. What an M that sleeps for this
  // heap does with it is up to it; the latest such time is kept.
  void expect_punctual(nanos when) noexcept {
    if (punctual_until_.load(relaxed) < when) punctual_until_.store(when, relaxed);
  }
  nanos punctual_until() const noexcept { return punctual_until_.load(relaxed); }

  // --- take the lock

  // Makes sure that the next add succeeds. Throws std::bad_alloc.
  void make_room() {
    if (room_.load(relaxed) < slack) grow(0);
  }

  // Arms a timer in state no_status or removed for t->when, and takes over a reference of the caller's. True: it is
  // the earliest of this heap now, so who sleeps for this heap has to be told. Only after make_room; it runs where
  // nothing can be undone any more (a goroutine's commit step), so it cannot fail.
  [[nodiscard]] bool add(timer* t) noexcept;

  // Runs what is due, but no more than so many, and puts right what has to be. Returns the next time, which is not
  // after `now` if due ones are left (0: none). `ran` is set if any ran.
  nanos check(nanos now, bool may_clear, bool* ran, std::uint32_t at_most = std::numeric_limits<std::uint32_t>::max());

  // By whoever is about to go to sleep: takes out stopped timers at the head, or all, if they are more than half.
  // The hint of one that was made earlier and stopped then may stay, and end one sleep in vain.
  void tidy();

  // Gives back most of an array that became far too large.
  void shrink() noexcept;

  // Moves every live timer of `from` here (set_procs). The world is stopped. Throws std::bad_alloc before anything
  // happened.
  void take_all(timer_heap& from);

  // Forgets every timer: each becomes removed. The world is stopped.
  void clear() noexcept;

 private:
  friend bool del_timer(timer* t, timer_heap* mine) noexcept;
  friend change_result change_timer(timer_heap& here, timer* t, const timer_setting& to);

  bool change_in_place(timer* t, const timer_setting& to, bool was_deleted) noexcept;
  bool put_in(timer* t, const timer_setting& to) noexcept;
  void grow(std::size_t promise);  // room for so many, which only take_all uses
  void insert(timer* t) noexcept;
  std::size_t free_places() const noexcept { return heap_.capacity() - heap_.size() - promised_; }
  bool note_earlier(nanos when) noexcept;
  void clean_head();
  bool take_out(timer* t);
  void clean_tail();
  void adjust(nanos now);
  void rebuild();
  bool run_head(nanos now, bool* ran);
  void run_one(timer* t, nanos now);
  void remove_head() noexcept;
  void leave(timer* t) noexcept;
  void sift_up(std::size_t i) noexcept;
  void sift_down(std::size_t i) noexcept;
  void heapify() noexcept;
  void unlock_and_publish() noexcept;

  lock lock_{lock_rank::timers};
  timer_entries heap_;
  timer* disposed_ = nullptr;  // left the heap with their last reference; freed after unlocking
  atomic<nanos> head_when_{0};
  atomic<nanos> earliest_change_{0};
  atomic<nanos> punctual_until_{0};
  atomic<std::uint32_t> count_{0};
  // Stopped timers: by who holds the heap's P, who is the only one to write there; taken out, under the lock. By
  // others: stopped_.
  atomic<std::uint32_t> stopped_here_{0}, taken_out_{0};

  // Free places of the array. make_room provides this many. Whoever can still throw, as any number of threads at once
  // do on the first P's heap, leaves half of them to the owner, who is between make_room and add and cannot.
  static constexpr std::size_t slack = 64;
  atomic<std::size_t> room_{0};
  std::size_t promised_ = 0;  // under the lock: free places that are none, since take_all needs them

  // Stopped by others, less those that were armed anew: in a cache line apart, which they would take from the owner.
  alignas(64) atomic<std::uint32_t> stopped_{0};
};

// Stops a timer wherever it is. True: it was armed and will not run. False: it was not armed, or its function runs
// now or has run. `mine`: the heap of the P that the caller holds, or null.
bool del_timer(timer* t, timer_heap* mine) noexcept;

// Gives a timer new values and arms it: in place if some heap still holds it, else in `here`.
[[nodiscard]] change_result change_timer(timer_heap& here, timer* t, const timer_setting& to);

}  // namespace weft::rt
