// The run queue of one P: a ring of 256 and the slot `runnext`, after Go's runqput, runqget and runqgrab.
//
// One owner (the M that holds the P) puts at the tail and takes at the head; any other P may steal from the head.
//
//   ring_[head .. tail)   runnable Gs. Only the owner moves tail; owner and thieves move head by CAS.
//   runnext               the G made ready last, which runs next in the time slice of the one that readied it, so
//                         that two goroutines that talk to each other are scheduled as one. Thieves take it last.
//
// Orders:
//   tail   the owner stores with release: a thief that loads it with acquire sees the slots below it. `publish` makes
//          the store seq_cst for the "append-check-wake" protocol (proc.cpp): the owner reads afterwards whether a P
//          idles, and an M that goes idle first announces that and then reads the queue.
//   head   a taker reads the slots first and then claims them by a release CAS; the owner loads head with acquire
//          before it reuses a slot, so the reads of the thief happened before.
//   slots  relaxed atomics: a slow thief may read a slot that is being reused, and its CAS on head then fails.
//
// "alone" (alone.cpp). A P has no thieves while all others idle. It then needs no locked instruction, and stores with
// release suffice, as other Ms only look. An M that takes another P waits until the owner has seen the change, and then
// sees all that was queued before. (take_half, which is rare, is the same in both cases.)
#pragma once

#include "runtime/atomic.hpp"
#include "runtime/config.hpp"
#include "runtime/fatal.hpp"
#include "runtime/g_queue.hpp"

#include <array>
#include <cstdint>

namespace weft::rt {

template <std::uint32_t Capacity>
class basic_run_queue {
  static_assert((Capacity & (Capacity - 1)) == 0 && Capacity >= 4);

 public:
  // --- the owner

  // Makes g the next to run. Returns the goroutine that was next before, which the caller has to put elsewhere.
  // seq_cst: publishes g, and is the barrier of append-check-wake, unless this P is alone.
  [[nodiscard]] G* put_next(G* g) noexcept {
    if (!unshared()) return next_.exchange(g, seq_cst);
    G* before = next_.load(relaxed);
    next_.store(g, release);
    std::atomic_signal_fence(seq_cst);  // the light barrier of a P that is alone
    return before;
  }

  enum class barrier : bool { no, publish };

  // Puts g at the tail. False: the ring is full.
  [[nodiscard]] bool put(G* g, barrier b) noexcept {
    std::uint32_t tail = tail_.load(relaxed);
    if (tail - head_.load(acquire) >= Capacity) return false;
    ring_[tail % Capacity].store(g, relaxed);
    if (b == barrier::publish && !unshared()) {
      tail_.store(tail + 1, seq_cst);
    } else {
      tail_.store(tail + 1, release);
      std::atomic_signal_fence(seq_cst);
    }
    return true;
  }

  // Called when the ring is full: takes half of it out. False: a thief made room meanwhile.
  using half = std::array<G*, Capacity / 2>;
  [[nodiscard]] bool take_half(half& out) noexcept {
    std::uint32_t head = head_.load(acquire);
    std::uint32_t n = (tail_.load(relaxed) - head) / 2;
    if (n != Capacity / 2) return false;
    for (std::uint32_t i = 0; i < n; ++i) out[i] = ring_[(head + i) % Capacity].load(relaxed);
    return head_.compare_exchange_strong(head, head + n, release, relaxed);
  }

  // Takes the next goroutine to run, or null. `inherit`: it was runnext and goes on in the present time slice.
  [[nodiscard]] G* get(bool* inherit) noexcept {
    G* g = get_next();
    *inherit = g != nullptr;
    return g ? g : get_from_ring();
  }

  // Takes runnext, or null.
  [[nodiscard]] G* get_next() noexcept {
    // Only the owner makes runnext non-null, so null cannot be missed; a thief may take it between the two steps.
    G* g = next_.load(relaxed);
    if (!g) return nullptr;
    if (unshared()) {
      next_.store(nullptr, relaxed);
      return g;
    }
    return next_.compare_exchange_strong(g, nullptr, acquire, relaxed) ? g : nullptr;
  }

  [[nodiscard, gnu::always_inline]] inline G* get_from_ring() noexcept {
    std::uint32_t head = head_.load(acquire);
    for (;;) {
      if (tail_.load(relaxed) == head) return nullptr;
      G* g = ring_[head % Capacity].load(relaxed);
      if (unshared()) {
        head_.store(head + 1, release);
      } else if (!head_.compare_exchange_strong(head, head + 1, release, acquire)) {
        continue;
      }
      // Whatever lies in the next slot is a G, or was one: G memory stays.
      if (const G* after = ring_[(head + 1) % Capacity].load(relaxed)) prefetch(after);
      return g;
    }
  }

  // The position of the goroutine that is taken next, and the position at which the next one is put.
  std::uint32_t head() const noexcept { return head_.load(relaxed); }
  std::uint32_t tail() const noexcept { return tail_.load(relaxed); }

  std::uint32_t room() const noexcept { return Capacity - (tail_.load(relaxed) - head_.load(acquire)); }

  // For the owner: true if no other M takes from this queue. That may change at any time, but no M takes from it before
  // the owner is outside the runtime, or has dispatched a goroutine.
  bool unshared() const noexcept { return unshared_.load(relaxed); }

  // For alone.cpp.
  void set_unshared(bool alone) noexcept { unshared_.store(alone, relaxed); }

  // --- anybody

  // True if nothing was here at some instant during the call. Reading head, tail and runnext one after the other is not
  // enough, as a G may move from runnext to the ring in between. An unchanged tail shows that none did.
  bool empty() const noexcept {
    for (;;) {
      std::uint32_t head = head_.load(seq_cst);
      std::uint32_t tail = tail_.load(seq_cst);
      G* next = next_.load(seq_cst);
      if (tail == tail_.load(seq_cst)) return head == tail && next == nullptr;
    }
  }

  // The same for the ring only.
  bool ring_empty() const noexcept {
    std::uint32_t head = head_.load(seq_cst);
    return tail_.load(seq_cst) == head;
  }

  std::uint32_t size() const noexcept {
    std::uint32_t n = tail_.load(relaxed) - head_.load(relaxed);
    return (n > Capacity ? 0 : n) + (next_.load(relaxed) ? 1 : 0);
  }

  G* peek_next() const noexcept { return next_.load(relaxed); }

  // Called by the owner of `mine`, which is empty: moves half of this ring there, and returns the last goroutine of
  // that half, to run at once. Null: there is nothing to take.
  [[nodiscard]] G* steal_into(basic_run_queue& mine) noexcept {
    std::uint32_t my_tail = mine.tail_.load(relaxed);
    std::uint32_t n = grab(mine, my_tail);
    if (n == 0) return nullptr;
    --n;
    G* g = mine.ring_[(my_tail + n) % Capacity].load(relaxed);
    if (n > 0) mine.tail_.store(my_tail + n, release);
    return g;
  }

  // Takes runnext from another P, if it is still `expected`. The last resort of a thief.
  [[nodiscard]] G* steal_next(G* expected) noexcept {
    return expected && next_.compare_exchange_strong(expected, nullptr, acquire, relaxed) ? expected : nullptr;
  }

 private:
  std::uint32_t grab(basic_run_queue& mine, std::uint32_t my_tail) noexcept {
    for (;;) {
      std::uint32_t head = head_.load(acquire);
      std::uint32_t tail = tail_.load(acquire);
      std::uint32_t n = tail - head;
      n -= n / 2;
      if (n == 0) return 0;
      if (n > Capacity / 2) continue;  // head and tail were not read at one instant
      for (std::uint32_t i = 0; i < n; ++i) {
        mine.ring_[(my_tail + i) % Capacity].store(ring_[(head + i) % Capacity].load(relaxed), relaxed);
      }
      if (head_.compare_exchange_strong(head, head + n, release, relaxed)) return n;
    }
  }

  alignas(64) atomic<std::uint32_t> head_{0};
  alignas(64) atomic<std::uint32_t> tail_{0};
  atomic<bool> unshared_{false};
  atomic<G*> next_{nullptr};
  std::array<atomic<G*>, Capacity> ring_{};
};

using run_queue = basic_run_queue<run_queue_size>;

}  // namespace weft::rt
