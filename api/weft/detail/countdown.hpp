// A count with waiters that wait until it is zero: the inside of wait_group and latch. Not for users.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/sync_base.hpp>

#include <cstdint>

namespace weft::detail {

enum class countdown_of : std::uint8_t { wait_group, latch };

class countdown {
 public:
  constexpr explicit countdown(std::int64_t n) noexcept : word_(n * one) {}
  countdown(const countdown&) = delete;
  countdown& operator=(const countdown&) = delete;

  static constexpr std::int64_t max = INT64_MAX / 4;

  // acquire: the caller sees what was done before each countdown.
  bool is_zero() const noexcept { return word_.load(std::memory_order_acquire) == 0; }
  std::int64_t count() const noexcept { return word_.load(std::memory_order_relaxed) / one; }

  // Adds n, which may be negative. False: the count would leave 0..max, and nothing was done.
  [[nodiscard]] bool add(std::int64_t n) noexcept {
    std::int64_t w = word_.load(std::memory_order_relaxed);
    for (;;) {
      if (n < -(w / one) || n > max - w / one) [[unlikely]]
        return false;
      const std::int64_t next = w + n * one;
      if (next == waiters) [[unlikely]] {
        if (to_zero(n)) return true;
        w = word_.load(std::memory_order_relaxed);
        continue;
      }
      // release: what was done before counting down is seen by every thread that sees zero. Earlier countdowns are
      // seen, too: all of them are read-modify-writes, which continue each other's release sequence.
      if (word_.compare_exchange_weak(w, next, std::memory_order_release, std::memory_order_relaxed)) return true;
    }
  }

  // Waits until the count is zero. False: the deadline passed. Throws std::bad_alloc, but only if there is a deadline.
  bool wait(std::int64_t deadline, countdown_of what) { return is_zero() || wait_slow(deadline, what); }

 private:
  static constexpr std::int64_t waiters = 1;  // the queue is not empty
  static constexpr std::int64_t one = 2;

  WEFT_API bool to_zero(std::int64_t n) noexcept;
  WEFT_API bool wait_slow(std::int64_t deadline, countdown_of what);

  atomic<std::int64_t> word_;
  sync_queue queue_{};
};

}  // namespace weft::detail
