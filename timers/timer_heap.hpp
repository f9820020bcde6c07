// The timers of one P: a 4-ary heap of {when, timer}, with the lazy operations of Go 1.14.
//
// Stopping or changing a timer marks it (timer.hpp) and leaves its entry where it is. The next thread that works on the
// heap puts the entry right: at the head, when entries come due (run_head); or everywhere in one pass (rebuild), when a
// timer was made earlier and that time has come (adjust), or when more than half of the entries are stopped.
//
// Threads that decide how long to sleep read two hints without the lock:
//   head_when        `when` of the first entry; 0 if there is none
//   earliest_change  no modified_earlier timer of this heap is due before this time; 0 if there is none
// wake_when() is the smaller one. It may be too early, and a thread then looks in vain, but it is never too late:
//   - A thread that makes a timer earlier (change_timer, no lock) lowers earliest_change BEFORE it publishes the state
//     modified_earlier.
//   - The thread that clears earliest_change (rebuild, with the lock) first lowers head_when to the value it clears,
//     then clears by compare-and-swap, and then reads the states. The hint of a timer made earlier before the swap is
//     folded into head_when; a timer made earlier after the swap lowers the hint again. All four operations are
//     seq_cst: the changer takes the timer (modifying) and then reads the hint; if it reads the value that the swap
//     clears, the swap comes later, and so the pass that reads the states after it sees the timer's new state.
//   - A reader (wake_when, no lock) reads earliest_change first. If it sees the cleared hint, it also sees the lowered
//     head (release/acquire on earliest_change).
//   - A thread that lowers earliest_change must have the sleeper told; a thread that finds it as low already need not.
//     An earlier head_when does not excuse it, since that may be a stopped timer's time: the sleeper reads the old
//     earliest_change; it is lowered; the stopped head is cleaned out, and head_when rises; the sleeper reads that.
//     Both values would be too late.
//   - head_when is set to its true value whenever the lock is released. So is the count, except while a function runs.
// The model of the states and the hints is tests/model/timer.pml.
#pragma once

#include "runtime/lock.hpp"
#include "timers/timer.hpp"
#include "timers/timer_entries.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace weft::rt {

// What a timer is armed with.
struct timer_setting {
  nanos when;
  nanos period;  // 0: once
  timer_function function;
  std::uint64_t seq;
};

struct change_result {
  bool was_pending;
  bool earliest;  // an M that sleeps for the heap that the timer is in now must be told
};

// A wait of at most this length should end on time, to the microsecond.
inline constexpr nanos punctual_wait = 10 * millisecond;

class timer_heap {
 public:
  timer_heap() = default;
  timer_heap(const timer_heap&) = delete;
  timer_heap& operator=(const timer_heap&) = delete;

  // --- no lock needed

  // Returns the earliest time at which a timer of this heap may be due; 0 if no timer is pending.
  nanos wake_when() const noexcept;

  // Returns the number of entries, stopped ones included.
  std::uint32_t size() const noexcept { return count_.load(relaxed); }

  // Returns the number of entries that were stopped and not yet cleaned out. While other threads stop timers, it is an
  // estimate, but not below zero: the loads are in this order so that a caller that counts a timer as taken out, or as
  // armed anew, has also counted that it was stopped.
  std::uint32_t deleted_count() const noexcept {
    const std::uint32_t out = taken_out_.load(acquire), elsewhere = stopped_.load(acquire);
    return elsewhere + stopped_here_.load(relaxed) - out;
  }

  // A pass looks at every entry. With this rule it looks at no more than two entries for each one that it takes out.
  // Go's rule is a quarter, which makes it four.
  bool worth_rebuilding(std::size_t entries) const noexcept { return deleted_count() > entries / 2; }

  // Notes that the wait that ends at `when` should end on time: a short sleep, or a fast ticker. The latest such time
  // is kept. It is a hint for the M that sleeps for this heap.
  void expect_punctual(nanos when) noexcept {
    if (punctual_until_.load(relaxed) < when) punctual_until_.store(when, relaxed);
  }
  nanos punctual_until() const noexcept { return punctual_until_.load(relaxed); }

  // --- take the lock

  // Makes sure that the next add has room. Throws std::bad_alloc.
  void make_room() {
    if (room_.load(relaxed) < slack) grow(0);
  }

  // Arms a timer in state no_status or removed for t->when, and takes over a reference of the caller. True: the timer
  // is the earliest of this heap now, so an M that sleeps for this heap must be told. The caller must have called
  // make_room before: add runs where nothing can be undone any more (a goroutine's commit step), so it must not fail.
  [[nodiscard]] bool add(timer* t) noexcept;

  // Called by the function of t, which has just fired from this heap, once: arms t as it was armed before, for `when`.
  // There is always room, also where there is no memory. No other thread may arm t meanwhile.
  void arm_again(timer* t, nanos when) noexcept;

  // Runs the timers that are due, but no more than `at_most`, and adjusts the heap if a timer was made earlier and that
  // time has come. If `may_clear`, it also rebuilds the heap where that is worth it. Sets `ran` if any timer ran.
  // Returns the next time; 0: nothing is pending. If timers that are due are left, that time is not after `now`.
  nanos check(nanos now, bool may_clear, bool* ran, std::uint32_t at_most = std::numeric_limits<std::uint32_t>::max());

  // Called by an M that is about to sleep. Takes out the stopped timers at the head, or all stopped timers if they are
  // more than half of the entries. The hint of a timer that was made earlier and then stopped may stay, and end one
  // sleep in vain.
  void tidy();

  // Gives back most of an array that has become far too large.
  void shrink() noexcept;

  // Moves every live timer of `from` into this heap (set_procs). The world must be stopped. If it throws
  // std::bad_alloc, no timer has moved.
  void take_all(timer_heap& from);

  // Forgets every timer: each becomes removed. The world must be stopped.
  void clear() noexcept;

 private:
  friend bool del_timer(timer* t, timer_heap* mine) noexcept;
  friend change_result change_timer(timer_heap& here, timer* t, const timer_setting& to);

  bool change_in_place(timer* t, const timer_setting& to, bool was_deleted) noexcept;
  bool put_in(timer* t, const timer_setting& to) noexcept;
  void grow(std::size_t promise);  // makes room, and sets `promise` places aside for take_all
  void insert(timer* t) noexcept;
  std::size_t free_places() const noexcept {
    const std::size_t taken = heap_.size() + promised_;  // a place that arm_again has taken counts twice for a moment
    return heap_.capacity() - std::min(taken, heap_.capacity());
  }
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
  timer* disposed_ = nullptr;  // timers whose last reference was this heap's; disposed of after unlocking
  atomic<nanos> head_when_{0};
  atomic<nanos> earliest_change_{0};
  atomic<nanos> punctual_until_{0};
  atomic<std::uint32_t> count_{0};
  // stopped_here_ counts the timers stopped by the thread that holds the heap's P, its only writer. taken_out_ counts
  // the stopped timers that were taken out; it is written under the lock. Timers stopped by other threads are in
  // stopped_.
  atomic<std::uint32_t> stopped_here_{0}, taken_out_{0};

  // The number of free places in the array that make_room provides. Between make_room and add, the owner of the P
  // cannot fail any more. So an operation that can still grow the array (change_timer) takes none of the last half of
  // these places. Any number of threads may call it at once on the heap of P 0.
  static constexpr std::size_t slack = 64;
  atomic<std::size_t> room_{0};
  // Under the lock: places that do not count as free, since take_all, or timers that are firing, need them.
  std::size_t promised_ = 0;

  // Timers stopped by other threads, less those that were armed anew. On a cache line of its own: otherwise these
  // threads would take the owner's line away.
  alignas(64) atomic<std::uint32_t> stopped_{0};
};

// Stops a timer, whichever heap it is in. True: it was armed and will not run. False: it was not armed, or its function
// is running or has run. `mine`: the heap of the P that the caller holds, or null.
bool del_timer(timer* t, timer_heap* mine) noexcept;

// Arms a timer with new values: in place if some heap still holds it, otherwise in `here`.
[[nodiscard]] change_result change_timer(timer_heap& here, timer* t, const timer_setting& to);

}  // namespace weft::rt
