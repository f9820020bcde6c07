// The inside of a channel, for chan.cpp, select.cpp and time.cpp.
//
// Everything is under `mutex`, in the manner of Go's hchan. At any time, when the lock is free:
//   - at most one of the two queues has waiters that can still be claimed (a select may wait in both);
//   - waiting senders: the buffer is full; waiting receivers: it is empty.
//
// Who waits lies in its goroutine's header or, with a time limit or in several queues, on its stack (`waiter`). It is
// unlinked under the lock, by whoever serves it or, after a time limit or another case of a select, by itself. So a
// waiter can be looked at by whoever holds the lock.
//
// Handing over: the one who comes second moves the value directly between the two stacks, unlinks and claims the
// waiter, unlocks, and readies it. A waiter whose claim fails (timed out, chosen elsewhere, abandoned with its run())
// is dropped, and the next one is looked at.
//
// "looks". `count`, `closed` and the queues' heads are atomics only so that an operation may guess without the lock
// whether it will be done at once, and so that try_recv, try_send and select with one case and a default may look
// without the lock and say "not ready". That answer shall be true at some instant during the call, also for who
// compares it with what else he knows, in sequentially consistent atomics: one sends, then looks whether the other is
// done; the other says so, then drains. So when a send, a receive or a close has returned, no look that begins
// afterwards misses it. The lock does not see to that, as its release is a plain store that may be seen later than what
// its thread reads next. So what makes a channel ready is stored seq_cst, and looked at so: the first value in an empty
// buffer, the first room in a full one, the close. Further values and further room need not be: as long as they are
// unseen, the ones before them are seen, which nobody can take without the lock (only size() is then a moment old). A
// waiter that comes makes a channel ready, too, but it has not returned. The other stores are relaxed, but for a
// waiter's leaving: who sees the queue empty after that sees the close that emptied it. The model is
// tests/model/channel.pml.
#pragma once

#include "sched/park.hpp"
#include "weft/detail/chan_core.hpp"

#include <cstring>

namespace weft::detail {

struct waiter {
  rt::G* g;
  rt::wait_ticket ticket;
  void* value;  // send: to move from; receive: where to construct
  // Of the queue.
  waiter* next;
  waiter* prev;
  bool queued;
  bool success;         // written when it is claimed: served with a value; false: the channel was closed
  std::uint32_t index;  // select: which case
};

// FIFO. Under the channel's lock, but for looks_empty.
class wait_queue {
 public:
  bool looks_empty() const noexcept { return first_.load(rt::acquire) == nullptr; }

  void push_back(waiter* w) noexcept {
    w->next = nullptr;
    w->prev = last_;
    if (last_) {
      last_->next = w;
    } else {
      first_.store(w, rt::relaxed);
    }
    last_ = w;
    w->queued = true;
  }

  void remove(waiter* w) noexcept {
    if (!w->queued) return;
    w->queued = false;
    if (w->prev) {
      w->prev->next = w->next;
    } else {
      first_.store(w->next, rt::release);
    }
    if (w->next) {
      w->next->prev = w->prev;
    } else {
      last_ = w->prev;
    }
  }

  waiter* first() const noexcept { return first_.load(rt::relaxed); }

  // Unlinks w, which is the first. False: it cannot be claimed.
  bool claim(waiter* w) noexcept {
    remove_first(w);
    return w->g->claim(w->ticket);
  }

  // The first waiter whose run() is not over. Those before it are unlinked.
  waiter* first_alive() noexcept {
    while (waiter* w = first_.load(rt::relaxed)) {
      if (!w->g->waits_for_good()) return w;
      remove(w);
    }
    return nullptr;
  }

  // The first waiter that can be claimed, unlinked and claimed; null: nobody.
  waiter* claim_first() noexcept {
    while (waiter* w = first_.load(rt::relaxed)) {
      if (claim(w)) return w;
    }
    return nullptr;
  }

 private:
  void remove_first(waiter* w) noexcept {
    w->queued = false;
    waiter* second = w->next;
    first_.store(second, rt::release);
    if (second) {
      second->prev = nullptr;
    } else {
      last_ = nullptr;
    }
  }

  rt::atomic<waiter*> first_{nullptr};
  waiter* last_ = nullptr;
};

class timer_core;

// A foreign thread that waits for a timer's value comes back when the run() that would send it is over, and waits again
// (rt::park_until_run_ends). So its waits are never for ever, but for some time.
inline constexpr rt::nanos foreign_timer_look_again = 3600 * rt::second;

// Of a timer's channel, under its lock (time.cpp).
void timer_catch_up(chan_core* c) noexcept;  // a value that is due by now is in the buffer
// Somebody is about to wait for a value: returns in which run() that is sent. Throws std::bad_alloc.
std::uint64_t timer_begin_wait(chan_core* c);
void timer_channel_gone(chan_core* c) noexcept;  // without the lock: the last reference is gone

class chan_core {
 public:
  chan_core(const element& e, std::size_t cap, std::size_t stride_bytes, std::byte* buf) noexcept
      : words(!e.move && !e.destroy && (e.size == 0 || e.size == 4 || e.size == 8)),
        elem(e),
        capacity(cap),
        stride(stride_bytes),
        buffer(buf) {}

  void move(void* to, void* from) const noexcept {
    if (elem.move) {
      rt::users_code_scope scope;
      return elem.move(to, from);
    }
    switch (elem.size) {
      case 0: return;
      case 4: std::memcpy(to, from, 4); return;
      case 8: std::memcpy(to, from, 8); return;
      default: std::memcpy(to, from, elem.size);
    }
  }
  void move_word(void* to, const void* from) const noexcept {
    if (elem.size == 4) {
      std::memcpy(to, from, 4);
    } else if (elem.size == 8) {
      std::memcpy(to, from, 8);
    }
  }
  void destroy(void* at) const noexcept {
    if (!elem.destroy) return;
    rt::users_code_scope scope;
    elem.destroy(at);
  }
  std::byte* slot_at(std::size_t i) const noexcept { return buffer + i * stride; }

  // Under the lock.
  std::byte* free_slot() const noexcept {
    std::size_t at = head + count.load(rt::relaxed);
    return slot_at(at >= capacity ? at - capacity : at);
  }
  void push(void* value) noexcept {
    move(free_slot(), value);
    one_more();
  }
  void pop(void* out) noexcept {
    std::byte* at = slot_at(head);
    move(out, at);
    destroy(at);
    drop_head();
  }
  // A sender waits, so the buffer is full. `count` stays as it is: who looks without the lock never sees room or, with
  // a capacity of 1, no value.
  void pop_and_push(void* out, void* value) noexcept {
    std::byte* at = slot_at(head);
    move(out, at);
    destroy(at);
    move(at, value);
    advance_head();
  }
  void advance_head() noexcept {
    if (++head == capacity) head = 0;
  }
  void drop_head() noexcept {
    advance_head();
    one_less();
  }
  // What ends an emptiness or a fullness: "looks".
  void one_more() noexcept {
    std::size_t n = count.load(rt::relaxed);
    if (n == 0) {
      count.store(1, rt::seq_cst);
    } else {
      count.store(n + 1, rt::relaxed);
    }
  }
  void one_less() noexcept {
    std::size_t n = count.load(rt::relaxed);
    if (n == capacity) {
      count.store(n - 1, rt::seq_cst);
    } else {
      count.store(n - 1, rt::relaxed);
    }
  }

  // Under the lock: does the operation if that needs no waiting. *wake: a waiter that was served and has to be
  // readied after unlocking.
  chan_status send_now(void* value, waiter** wake) noexcept {
    if (closed.load(rt::relaxed)) return chan_status::closed;
    if (waiter* w = receivers.claim_first()) {
      move(w->value, value);
      w->success = true;
      *wake = w;
      return chan_status::done;
    }
    if (count.load(rt::relaxed) < capacity) {
      push(value);
      return chan_status::done;
    }
    return chan_status::would_block;
  }

  chan_status recv_now(void* out, waiter** wake) noexcept {
    if (WEFT_UNLIKELY(timer != nullptr)) timer_catch_up(this);
    if (count.load(rt::relaxed) > 0) {
      if (waiter* w = senders.claim_first()) {
        pop_and_push(out, w->value);
        w->success = true;
        *wake = w;
      } else {
        pop(out);
      }
      return chan_status::done;
    }
    if (waiter* w = senders.claim_first()) {
      move(out, w->value);
      w->success = true;
      *wake = w;
      return chan_status::done;
    }
    return closed.load(rt::relaxed) ? chan_status::closed : chan_status::would_block;
  }

  // The same in the frequent cases, if the elements are words: the other side waits; or nobody does, and there is room,
  // or a value. False: it was not done.
  bool send_word(const void* value, waiter** wake) noexcept {
    if (closed.load(rt::relaxed)) return false;
    if (waiter* w = receivers.first()) {
      if (!receivers.claim(w)) return false;
      move_word(w->value, value);
      w->success = true;
      *wake = w;
      return true;
    }
    if (count.load(rt::relaxed) >= capacity) return false;
    move_word(free_slot(), value);
    one_more();
    return true;
  }
  bool recv_word(void* out, waiter** wake) noexcept {
    waiter* w = senders.first();
    if (count.load(rt::relaxed) > 0) {
      if (w) return false;
      move_word(out, slot_at(head));
      drop_head();
      return true;
    }
    if (!w || !senders.claim(w)) return false;
    move_word(out, w->value);
    w->success = true;
    *wake = w;
    return true;
  }

  // Without the lock: a guess.
  bool looks_ready_to_send() const noexcept { return count.load(rt::relaxed) < capacity || !receivers.looks_empty(); }
  bool looks_ready_to_recv() const noexcept { return count.load(rt::relaxed) > 0 || !senders.looks_empty(); }

  // Without the lock: surely not ready at some instant during the call. closed last: a channel is not opened again, so
  // it was open when it was seen to be full, or empty. Else a receiver that a close sends away is missed, and the
  // close.
  bool send_would_block() const noexcept {
    return receivers.looks_empty() && count.load(rt::seq_cst) >= capacity && !closed.load(rt::seq_cst);
  }
  bool recv_would_block() const noexcept {
    if (WEFT_UNLIKELY(timer != nullptr)) return false;  // that takes the clock, and the lock
    return count.load(rt::seq_cst) == 0 && senders.looks_empty() && !closed.load(rt::seq_cst);
  }

  rt::atomic<std::uint32_t> references{1};
  rt::goroutine_lock mutex{rt::lock_rank::channel};
  rt::atomic<bool> closed{false};
  const bool words;             // to move an element is to copy a word, or nothing
  timer_core* timer = nullptr;  // of a timer or ticker: shows size and capacity 0
  const element elem;
  const std::size_t capacity;
  const std::size_t stride;
  std::byte* const buffer;
  std::size_t head = 0;
  rt::atomic<std::size_t> count{0};
  wait_queue receivers;
  wait_queue senders;
};

// Whom to ready for a waiter that was claimed under the lock. It finds the waiter in wake_value.
inline rt::G* woken_by(waiter* w) noexcept {
  w->g->wake_value = w;
  return w->g;
}
inline void wake(rt::M* m, waiter* w) noexcept { rt::ready(m, woken_by(w)); }
inline void wake_without_prefetch(rt::M* m, waiter* w) noexcept { rt::ready_without_prefetch(m, woken_by(w)); }

}  // namespace weft::detail
