#include "timers/timer_heap.hpp"

#include "runtime/fatal.hpp"
#include "timers/timer_moves.hpp"

#include <algorithm>
#include <sched.h>
#include <utility>
#include <vector>

namespace weft::rt {

namespace {

using enum timer_status;

// Another thread holds the timer for a few instructions. Yields, so that the kernel can let that thread run.
void look_again() noexcept { sched_yield(); }

nanos not_before_epoch(nanos when) noexcept { return when < 1 ? 1 : when; }  // 0 means "none" in the hints

// Called by the only writer of n. release: pairs with deleted_count.
void count_one(atomic<std::uint32_t>& n) noexcept { n.store(n.load(relaxed) + 1, release); }

// Sets all fields but the time.
void take_over(timer* t, const timer_setting& to) noexcept {
  t->period = to.period;
  t->function = to.function;
  t->seq = to.seq;
}

}  // namespace

const char* describe(timer_status s) noexcept {
  switch (s) {
    case no_status: return "no_status";
    case waiting: return "waiting";
    case running: return "running";
    case deleted: return "deleted";
    case removing: return "removing";
    case removed: return "removed";
    case modifying: return "modifying";
    case modified_earlier: return "modified_earlier";
    case modified_later: return "modified_later";
    case moving: return "moving";
  }
  return "an unknown state";
}

void illegal_move(const timer* t, timer_status seen, timer_status to, const char* caller) noexcept {
  // Fails always. A state that changed while the caller held it is an error even if the move as such is in the table.
  assert_failed_with("is_legal_move(seen, to)", __FILE__, __LINE__, "{} would move timer {} from {} ({}) to {}", caller,
                     fmt::ptr(t), describe(seen), static_cast<int>(seen), describe(to));
}

nanos timer_heap::wake_when() const noexcept {
  // The order matters (see the header): a thread that clears earliest_change has lowered the head before. seq_cst: see
  // note_earlier.
  nanos change = earliest_change_.load(seq_cst);
  nanos head = head_when_.load(seq_cst);
  if (head == 0) return change;
  if (change == 0) return head;
  return std::min(head, change);
}

void timer_heap::unlock_and_publish() noexcept {
  // Without an entry, no thread is changing a timer of this heap either.
  if (heap_.empty()) earliest_change_.store(0, release);
  // seq_cst: as in note_earlier.
  const nanos head = heap_.empty() ? 0 : heap_.front().when;
  if (head_when_.load(relaxed) != head) head_when_.store(head, seq_cst);
  count_.store(static_cast<std::uint32_t>(heap_.size()), relaxed);
  room_.store(free_places(), relaxed);
  timer* dead = std::exchange(disposed_, nullptr);
  lock_.release_lock();
  while (dead) {
    timer* t = std::exchange(dead, dead->next_disposed);
    t->dispose(t);
  }
}

// Called under the lock. Gives up the heap's reference to t. If it was the last one, t is disposed of when the lock is
// released.
void timer_heap::leave(timer* t) noexcept {
  if (!t->drop()) return;
  t->next_disposed = disposed_;
  disposed_ = t;
}

void timer_heap::grow(std::size_t promise) {
  lock_.acquire_lock();
  // While every P idles, nobody else looks at what threads without a P set and stop. A small array grows first.
  if (heap_.size() >= slack && worth_rebuilding(heap_.size())) rebuild();
  std::size_t want = heap_.size() + promised_ + promise + slack;
  try {
    if (heap_.capacity() < want) heap_.reserve(std::max(want, 2 * heap_.capacity()));
  } catch (...) {
    lock_.release_lock();
    throw;
  }
  promised_ += promise;
  unlock_and_publish();
}

bool timer_heap::add(timer* t) noexcept {
  static_assert(is_legal_move(outside_states, waiting));
  if (timer_status s = t->status.load(acquire); !outside_states.has(s)) illegal_move(t, s, waiting);
  t->when = not_before_epoch(t->when);
  lock_.acquire_lock();
  insert(t);
  // The state is published before any thread can act upon the entry: looking at the heap takes the lock.
  t->status.store(waiting, release);
  bool earliest = heap_.front().t == t;
  unlock_and_publish();
  return earliest;
}

// Called under the lock.
void timer_heap::insert(timer* t) noexcept {
  clean_head();
  clean_tail();
  WEFT_ASSERT(free_places() > 0, "no room for a timer among {}", heap_.size());
  heap_.push_back({t->when, t});
  t->heap = this;
  sift_up(heap_.size() - 1);
}

// Lowers earliest_change to `when`. True: it was later before, so a sleeper may sleep too long.
bool timer_heap::note_earlier(nanos when) noexcept {
  // seq_cst, for two reasons. This load comes after the caller took the timer (see rebuild). And it pairs with the
  // sleeper, which announces that it sleeps (P1, poller_sleep.cpp) and then reads this hint (P2, wake_when).
  nanos old = earliest_change_.load(seq_cst);
  while (old == 0 || when < old) {
    if (earliest_change_.compare_exchange_weak(old, when, seq_cst, seq_cst)) return true;
  }
  return false;
}

bool del_timer(timer* t, timer_heap* mine) noexcept {
  for (;;) {
    timer_status s = t->status.load(acquire);
    switch (s) {
      case waiting:
      case modified_earlier:
      case modified_later:
        // Goes through modifying, so that t->heap cannot change (take_all) between reading it and counting.
        if (try_move<armed_states, modifying>(t, s)) {
          timer_heap* h = t->heap;
          // Counts before the state says deleted. So the thread that takes the timer out, or forgets all (clear), comes
          // after.
          if (h == mine) {
            count_one(h->stopped_here_);
          } else {
            h->stopped_.fetch_add(1, relaxed);
          }
          finish_move<modifying, deleted>(t);
          return true;
        }
        break;
      case deleted:
      case removing:
      case removed:
      case no_status: return false;
      case running:
      case moving:
      case modifying: look_again(); break;
      default: illegal_move(t, s, modifying);
    }
  }
}

change_result change_timer(timer_heap& here, timer* t, const timer_setting& to) {
  for (;;) {
    timer_status s = t->status.load(acquire);
    switch (s) {
      case waiting:
      case modified_earlier:
      case modified_later:
      case deleted:
        if (!try_move<resting_states, modifying>(t, s)) break;
        return {s != deleted, t->heap->change_in_place(t, to, s == deleted)};
      case no_status:
      case removed: {
        here.make_room();
        here.lock_.acquire_lock();
        bool taken = here.free_places() > timer_heap::slack / 2 && try_move<outside_states, modifying>(t, s);
        bool earliest = taken && here.put_in(t, to);
        here.unlock_and_publish();
        if (taken) return {false, earliest};
        break;
      }
      case running:
      case removing:
      case moving:
      case modifying: look_again(); break;
      default: illegal_move(t, s, modifying);
    }
  }
}

// t is modifying, and its entry stays where it is. Returns true if a sleeper may sleep too long.
bool timer_heap::change_in_place(timer* t, const timer_setting& to, bool was_deleted) noexcept {
  take_over(t, to);
  const nanos when = not_before_epoch(to.when);
  t->next_when = when;
  if (was_deleted) stopped_.fetch_sub(1, release);  // pairs with deleted_count
  if (when >= t->when) {
    finish_move<modifying, modified_later>(t);
    return false;
  }
  // The hint is lowered before the state is published. So a reader of the hints is never too late. And the entry, which
  // stays as long as t is modifying, cannot leave the heap before its hint comes; otherwise the hint would outlive it.
  // The hint is lowered even if the timer was modified_earlier already: adjust may have cleared the hint since.
  bool lowered = note_earlier(when);
  finish_move<modifying, modified_earlier>(t);
  return lowered;
}

// Called under the lock. t is modifying and in no heap. Returns true if t is the earliest timer now.
bool timer_heap::put_in(timer* t, const timer_setting& to) noexcept {
  take_over(t, to);
  t->when = not_before_epoch(to.when);
  t->retain();
  insert(t);
  finish_move<modifying, waiting>(t);
  return heap_.front().t == t;
}

void timer_heap::arm_again(timer* t, nanos when) noexcept {
  timer_status s = t->status.load(acquire);
  lock_.acquire_lock();
  if (!try_move<outside_states, modifying>(t, s)) illegal_move(t, s, modifying);
  --promised_;  // by run_one, for t
  put_in(t, {when, 0, t->function, t->seq});
  ++promised_;
  unlock_and_publish();
}

// Called under the lock. Marks t, which was stopped, as being in no heap, and gives up the heap's reference. From then
// on its owner may arm it anew, at once and in another heap. So the caller must remove the entry without looking at t.
// False: t is not deleted any more.
bool timer_heap::take_out(timer* t) {
  // If the heap's reference is the only one, there is no owner any more who could arm t anew. The last owner may have
  // done so before it let go of t; has_one_reference acquires what it did, so the state is read after that.
  const bool ownerless = t->has_one_reference() && t->status.load(relaxed) == deleted;
  if (!ownerless && !try_move<deleted, removing>(t)) return false;
  count_one(taken_out_);
  if (!ownerless) finish_move<removing, removed>(t);
  leave(t);
  return true;
}

// Called under the lock. Afterwards the head is live and in its place, or the heap is empty.
void timer_heap::clean_head() {
  while (!heap_.empty()) {
    timer* t = heap_.front().t;
    timer_status s = t->status.load(acquire);
    switch (s) {
      case deleted:
        if (take_out(t)) remove_head();
        break;
      case modified_earlier:
      case modified_later:
        if (!try_move<changed_states, moving>(t, s)) break;
        t->when = t->next_when;
        heap_.front().when = t->when;
        sift_down(0);
        finish_move<moving, waiting>(t);
        break;
      case modifying: look_again(); break;
      case waiting: return;
      default: illegal_move(t, s, moving);
    }
  }
}

// Called under the lock. Takes out the stopped timers at the end of the array, without any sifting. A timer that was
// set last and stopped soon (a time limit that was not needed) most often lies there.
void timer_heap::clean_tail() {
  while (deleted_count() > 0 && !heap_.empty()) {
    timer* t = heap_.back().t;
    if (t->status.load(acquire) != deleted || !take_out(t)) return;
    heap_.pop_back();
  }
}

// Called under the lock. If a timer was made earlier and that time has come, puts every entry in its place.
void timer_heap::adjust(nanos now) {
  nanos change = earliest_change_.load(acquire);
  if (change != 0 && change <= now) rebuild();
}

// Called under the lock. In one pass over the heap, takes out the stopped timers and puts the changed ones right.
void timer_heap::rebuild() {
  // Folds the hint into the head before clearing the hint; the true head is published at unlock. The hint is cleared by
  // compare-and-swap, so that a hint that was lowered meanwhile is folded, too (Go issue 47329). A timer that is made
  // earlier after that lowers the hint again; its state is seen in this pass or, through the hint, in the next one.
  nanos head = head_when_.load(relaxed);
  for (nanos change = earliest_change_.load(acquire); change != 0;) {
    if (head == 0 || change < head) head_when_.store(head = change, release);
    // seq_cst: as in note_earlier. acquire: for the hint that is folded next.
    if (earliest_change_.compare_exchange_weak(change, 0, seq_cst, acquire)) break;
  }

  bool dirty = false;
  std::size_t out = 0;
  constexpr std::size_t ahead = 32;  // entries to prefetch ahead: if there are many timers, they are not in the cache
  for (std::size_t i = 0; i < heap_.size();) {
    if (i + ahead < heap_.size()) __builtin_prefetch(heap_[i + ahead].t, 1);
    timer* t = heap_[i].t;
    timer_status s = t->status.load(seq_cst);  // after the hint was cleared
    switch (s) {
      case deleted:
        if (!take_out(t)) continue;
        dirty = true;
        ++i;
        continue;
      case modified_earlier:
      case modified_later:
        if (!try_move<changed_states, moving>(t, s)) continue;
        t->when = t->next_when;
        heap_[out++] = {t->when, t};
        finish_move<moving, waiting>(t);
        dirty = true;
        ++i;
        continue;
      case waiting:
        heap_[out++] = heap_[i];
        ++i;
        continue;
      case modifying: look_again(); continue;
      default: illegal_move(t, s, moving);
    }
  }
  heap_.shrink(out);
  if (dirty) heapify();
}

// Called under the lock, which is released while the timer's function runs. False: nothing is due.
bool timer_heap::run_head(nanos now, bool* ran) {
  for (;;) {
    if (heap_.empty()) return false;
    timer* t = heap_.front().t;
    timer_status s = t->status.load(acquire);
    switch (s) {
      case waiting:
        if (t->when > now) return false;
        if (!try_move<waiting, running>(t)) break;
        *ran = true;
        run_one(t, now);
        return true;
      case deleted:
      case modified_earlier:
      case modified_later: clean_head(); break;
      case modifying: look_again(); break;
      default: illegal_move(t, s, running);
    }
  }
}

void timer_heap::run_one(timer* t, nanos now) {
  // All fields are read before the state is given up: afterwards the owner may reuse or free the timer.
  timer_function function = t->function;
  std::uint64_t seq = t->seq;
  nanos due = t->when;
  bool counted = t->dispose != nullptr;
  if (t->period > 0) {
    // Missed ticks are skipped; the others stay on the grid.
    nanos late = now - t->when;
    t->when = saturating_add(t->when, t->period * (1 + late / t->period));
    if (t->period <= punctual_wait) expect_punctual(t->when);
    heap_.front().when = t->when;
    sift_down(0);
    t->retain();  // while the function runs, a stopped timer may leave the heap
    finish_move<running, waiting>(t);
  } else {
    remove_head();  // the heap's reference is released after the function has run
    finish_move<running, no_status>(t);
  }
  ++promised_;  // t's place, for arm_again
  head_when_.store(heap_.empty() ? 0 : heap_.front().when, release);
  lock_.release_lock();
  function(t, seq, due);
  if (counted) t->release();
  lock_.acquire_lock();
  --promised_;
}

nanos timer_heap::check(nanos now, bool may_clear, bool* ran, std::uint32_t at_most) {
  nanos next = wake_when();
  if (next == 0) return 0;
  if (now < next && !(may_clear && worth_rebuilding(size()))) return next;

  lock_.acquire_lock();
  adjust(now);
  while (run_head(now, ran) && --at_most != 0) continue;
  if (may_clear && worth_rebuilding(heap_.size())) rebuild();
  unlock_and_publish();
  return wake_when();
}

void timer_heap::tidy() {
  if (deleted_count() == 0) return;
  lock_.acquire_lock();
  if (worth_rebuilding(heap_.size())) {
    rebuild();
  } else {
    clean_head();
  }
  unlock_and_publish();
}

void timer_heap::shrink() noexcept {
  constexpr std::size_t small = 4096;
  lock_.acquire_lock();
  std::size_t enough = heap_.size() + promised_ + 2 * slack;
  if (heap_.capacity() > small && heap_.capacity() / 4 > enough) heap_.give_back(enough);
  unlock_and_publish();
}

void timer_heap::take_all(timer_heap& from) {
  std::vector<timer*> live;
  live.reserve(from.size() + slack);
  // Threads may add to this heap meanwhile, but not to `from`.
  const std::size_t promised = from.size();
  grow(promised);

  from.lock_.acquire_lock();
  timer_entries entries = std::move(from.heap_);
  from.earliest_change_.store(0, relaxed);
  for (timer_entry& e : entries) {
    timer* t = e.t;
    for (bool done = false; !done;) {
      timer_status s = t->status.load(acquire);
      switch (s) {
        case waiting:
        case modified_earlier:
        case modified_later:
          if (!try_move<armed_states, moving>(t, s)) break;
          if (s != waiting) t->when = t->next_when;
          live.push_back(t);
          done = true;
          break;
        case deleted: done = from.take_out(t); break;
        case modifying: look_again(); break;
        default: illegal_move(t, s, moving);
      }
    }
  }
  from.unlock_and_publish();

  lock_.acquire_lock();
  for (timer* t : live) {
    heap_.push_back({t->when, t});  // takes over the reference of the other heap
    t->heap = this;
    sift_up(heap_.size() - 1);
    finish_move<moving, waiting>(t);
  }
  promised_ -= promised;
  unlock_and_publish();
}

void timer_heap::clear() noexcept {
  lock_.acquire_lock();
  for (timer_entry& e : heap_) {
    timer* t = e.t;
    for (;;) {
      timer_status s = t->status.load(acquire);
      if (s != modifying) {
        if (!resting_states.has(s)) illegal_move(t, s, removed);
        if (try_move<resting_states, removed>(t, s)) break;
      }
      look_again();  // a foreign thread is changing it
    }
    leave(t);
  }
  heap_.shrink(0);
  for (auto* n : {&stopped_here_, &stopped_, &taken_out_}) n->store(0, relaxed);
  earliest_change_.store(0, relaxed);
  unlock_and_publish();
}

// --- the 4-ary heap: with four children to a node it is half as deep as a binary heap, and siblings share a cache line

namespace {
constexpr std::size_t arity = 4;
}

void timer_heap::sift_up(std::size_t i) noexcept {
  timer_entry moving_entry = heap_[i];
  while (i > 0) {
    std::size_t parent = (i - 1) / arity;
    if (moving_entry.when >= heap_[parent].when) break;
    heap_[i] = heap_[parent];
    i = parent;
  }
  heap_[i] = moving_entry;
}

void timer_heap::sift_down(std::size_t i) noexcept {
  std::size_t n = heap_.size();
  timer_entry moving_entry = heap_[i];
  for (;;) {
    std::size_t first = i * arity + 1;
    if (first >= n) break;
    std::size_t least = first;
    std::size_t end = std::min(first + arity, n);
    for (std::size_t c = first + 1; c < end; ++c) {
      if (heap_[c].when < heap_[least].when) least = c;
    }
    if (heap_[least].when >= moving_entry.when) break;
    heap_[i] = heap_[least];
    i = least;
  }
  heap_[i] = moving_entry;
}

void timer_heap::heapify() noexcept {
  if (heap_.size() < 2) return;
  for (std::size_t i = (heap_.size() - 2) / arity + 1; i-- > 0;) sift_down(i);
}

void timer_heap::remove_head() noexcept {
  heap_.front() = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sift_down(0);
  // The entry after the next one is a child of the root. Where many timers are due, these are not in the cache.
  for (std::size_t i = 0, n = std::min(arity + 1, heap_.size()); i < n; ++i) __builtin_prefetch(heap_[i].t);
}

}  // namespace weft::rt
