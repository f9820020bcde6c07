// The inside of a channel, for chan.cpp, select.cpp and time.cpp.
//
// Everything is protected by `mutex`, as in Go's hchan. Whenever the lock is free:
//   - at most one of the two queues has waiters that can still be claimed (a select may wait in both);
//   - if senders wait, the buffer is full; if receivers wait, it is empty.
//
// A waiter (`waiter`) lies in its goroutine's header or, if the wait has a time limit or is in several queues, on the
// goroutine's stack. It is unlinked under the lock: by the party that serves it, or by its own goroutine after the time
// limit has passed or another case of the select was chosen. So the holder of the lock may look at any queued waiter.
//
// Handing over: the party that comes second unlinks and claims the waiter, moves the value directly between the two
// stacks, unlocks, and readies the waiter's goroutine. A waiter whose claim fails (it timed out, was chosen elsewhere,
// or was abandoned with its run()) is dropped, and the next one is tried.
//
// "looks". `count`, `closed` and the queues' heads are atomics for one reason: an operation may guess without the lock
// whether it can finish at once, and try_recv, try_send and a select with one case and a default may answer "not ready"
// without taking the lock. That answer must be true at some instant during the call, even for a caller that combines it
// with what it knows from other sequentially consistent atomics. Example: one goroutine sends, then looks whether the
// other is done; the other announces that it is done, then drains the channel. So once a send, a receive or a close has
// returned, no look that begins afterwards may miss it. The lock does not ensure that: its release is a plain store,
// which may become visible later than what the thread reads next. Therefore the stores that make a channel ready are
// seq_cst, and so are the looks at them: the first value in an empty buffer, the first free slot in a full one, the
// close. The stores of further values and further free slots need not be: while they are not visible yet, the earlier
// ones are, and nobody can take those without the lock (only size() is then a moment old). A waiter that queues makes a
// channel ready, too, but its call has not returned. All other stores are relaxed, except the one that unlinks a
// waiter: a thread that sees the queue empty after it also sees the close that emptied the queue. The model is
// tests/model/channel.pml.
#pragma once

#include "sched/park.hpp"
#include "weft/detail/chan_core.hpp"

#include <cstring>

namespace weft::detail {

struct waiter {
  rt::G* g;
  rt::wait_ticket ticket;
  void* value;  // send: what to move from; receive: where to construct
  // Used by the queue:
  waiter* next;
  waiter* prev;
  bool queued;
  bool success;         // set by the party that claims it. True: served; false: the channel was closed
  std::uint32_t index;  // select: which case
};

// FIFO. Every member but looks_empty is called under the channel's lock.
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

  // Unlinks w, which is the first waiter, and claims it. False: it cannot be claimed.
  bool claim(waiter* w) noexcept {
    remove_first(w);
    return w->g->claim(w->ticket);
  }

  // Returns the first waiter whose run() is not over, or null. Unlinks those before it.
  waiter* first_alive() noexcept {
    while (waiter* w = first_.load(rt::relaxed)) {
      if (!w->g->waits_for_good()) return w;
      remove(w);
    }
    return nullptr;
  }

  // Unlinks waiters until one can be claimed. Returns that one, or null if there is none.
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

// A foreign thread that waits for a timer's value comes back when the run() that would send it is over, and then waits
// again (rt::park_until_run_ends). So it never waits without a time limit, but for this long again and again.
inline constexpr rt::nanos foreign_timer_look_again = 3600 * rt::second;

// For a timer's channel, called under its lock (time.cpp).
void timer_catch_up(chan_core* c) noexcept;  // puts a value that is due by now into the buffer
// The caller is about to wait for a value. Returns the number of the run() that will send it. Throws std::bad_alloc.
std::uint64_t timer_begin_wait(chan_core* c);
void timer_channel_gone(chan_core* c) noexcept;  // called without the lock, when the last reference is gone

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
  void belong_to(timer_core* t) noexcept {
    timer = t;
    words = false;
  }
  std::byte* slot_at(std::size_t i) const noexcept { return buffer + i * stride; }

  // Called under the lock. n: how many values are in the buffer.
  std::byte* free_slot(std::size_t n) const noexcept {
    std::size_t at = head + n;
    return slot_at(at >= capacity ? at - capacity : at);
  }
  void push(std::size_t n, void* value) noexcept {
    move(free_slot(n), value);
    one_more(n);
  }
  void pop(std::size_t n, void* out) noexcept {
    std::byte* at = slot_at(head);
    move(out, at);
    destroy(at);
    drop_head(n);
  }
  // Receives from a full buffer and refills it from a waiting sender. `count` does not change in between, so a look
  // without the lock never sees free room or, with a capacity of 1, an empty buffer.
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
  void drop_head(std::size_t n) noexcept {
    advance_head();
    one_less(n);
  }
  // The store that ends emptiness or fullness is seq_cst: "looks".
  void one_more(std::size_t n) noexcept {
    if (n == 0) {
      count.store(1, rt::seq_cst);
    } else {
      count.store(n + 1, rt::relaxed);
    }
  }
  void one_less(std::size_t n) noexcept {
    if (n == capacity) {
      count.store(n - 1, rt::seq_cst);
    } else {
      count.store(n - 1, rt::relaxed);
    }
  }

  // Called under the lock. Performs the operation if it need not wait. *wake is set to the waiter that was served, if
  // any; the caller readies it after unlocking.
  chan_status send_now(void* value, waiter** wake) noexcept {
    if (closed.load(rt::relaxed)) return chan_status::closed;
    if (waiter* w = receivers.claim_first()) {
      move(w->value, value);
      w->success = true;
      *wake = w;
      return chan_status::done;
    }
    if (std::size_t n = count.load(rt::relaxed); n < capacity) {
      push(n, value);
      return chan_status::done;
    }
    return chan_status::would_block;
  }

  chan_status recv_now(void* out, waiter** wake) noexcept {
    if (WEFT_UNLIKELY(timer != nullptr)) timer_catch_up(this);
    if (std::size_t n = count.load(rt::relaxed); n > 0) {
      if (waiter* w = senders.claim_first()) {
        pop_and_push(out, w->value);
        w->success = true;
        *wake = w;
      } else {
        pop(n, out);
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

  // For elements that are words, and in the frequent cases only. If nobody waits on the other side, and there is room
  // (send) or a value (receive), the operation is done. False: it was not done, and *first is set to the waiter on the
  // other side that has to be served, if that is simple, too.
  [[gnu::always_inline]] bool send_word(const void* value, waiter** first) noexcept {
    if (closed.load(rt::relaxed)) return false;
    const std::size_t n = count.load(rt::relaxed);
    if ((*first = receivers.first()) || n >= capacity) return false;
    move_word(free_slot(n), value);
    one_more(n);
    return true;
  }
  [[gnu::always_inline]] bool recv_word(void* out, waiter** first) noexcept {
    const std::size_t n = count.load(rt::relaxed);
    waiter* w = senders.first();
    if (n == 0) {
      *first = w;
      return false;
    }
    if (w) return false;
    move_word(out, slot_at(head));
    drop_head(n);
    return true;
  }
  // Serves that waiter. False: it has been served elsewhere meanwhile.
  bool send_word_to(waiter* receiver, const void* value) noexcept {
    if (!receivers.claim(receiver)) return false;
    move_word(receiver->value, value);
    receiver->success = true;
    return true;
  }
  bool recv_word_from(waiter* sender, void* out) noexcept {
    if (!senders.claim(sender)) return false;
    move_word(out, sender->value);
    sender->success = true;
    return true;
  }

  // Called under the lock: whether there is something to be done. The waiter may turn out to have been served
  // elsewhere.
  bool ready_to_send() noexcept {
    return closed.load(rt::relaxed) || count.load(rt::relaxed) < capacity || receivers.first_alive();
  }
  bool ready_to_recv() noexcept {
    if (timer) timer_catch_up(this);
    return closed.load(rt::relaxed) || count.load(rt::relaxed) > 0 || senders.first_alive();
  }

  // A guess, made without the lock.
  bool looks_ready_to_send() const noexcept { return count.load(rt::relaxed) < capacity || !receivers.looks_empty(); }
  bool looks_ready_to_recv() const noexcept { return count.load(rt::relaxed) > 0 || !senders.looks_empty(); }

  // Called without the lock. True: the channel was certainly not ready at some instant during the call. `closed` is
  // read last: a channel never reopens, so it was still open when it was seen to be full (or empty). Otherwise the look
  // could miss a receiver that a close sends away, and the close as well.
  bool send_would_block() const noexcept {
    return receivers.looks_empty() && count.load(rt::seq_cst) >= capacity && !closed.load(rt::seq_cst);
  }
  bool recv_would_block() const noexcept {
    if (WEFT_UNLIKELY(timer != nullptr)) return false;  // deciding that takes the clock and the lock
    return count.load(rt::seq_cst) == 0 && senders.looks_empty() && !closed.load(rt::seq_cst);
  }

  rt::atomic<std::uint32_t> references{1};
  rt::goroutine_lock mutex{rt::lock_rank::channel};
  rt::atomic<bool> closed{false};
  bool words;                   // moving an element copies a word, or nothing; and `timer` is null
  timer_core* timer = nullptr;  // set for a timer or ticker, whose channel shows size and capacity 0
  const element elem;
  const std::size_t capacity;
  const std::size_t stride;
  std::byte* const buffer;
  std::size_t head = 0;
  rt::atomic<std::size_t> count{0};
  wait_queue receivers;
  wait_queue senders;
};

// Returns the goroutine to ready for a waiter that was claimed under the lock. That goroutine finds the waiter in
// wake_value.
inline rt::G* woken_by(waiter* w) noexcept {
  w->g->wake_value = w;
  return w->g;
}
inline void wake(rt::M* m, waiter* w) noexcept { rt::ready(m, woken_by(w)); }
// For a sender whose value was taken. It does not come before a goroutine that is next already, which may have a value
// to use: values are used before further ones are made (docs/adr/0048-values-are-used-first.md).
inline void wake_sender(rt::M* m, waiter* w) noexcept { rt::ready(m, woken_by(w), rt::run_next::if_free); }
inline void wake_without_prefetch(rt::M* m, waiter* w) noexcept { rt::ready_without_prefetch(m, woken_by(w)); }

}  // namespace weft::detail
