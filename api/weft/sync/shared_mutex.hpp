// shared_mutex: one writer, or any number of readers. Four bytes.
//
//   state          lock                 lock_shared
//   free           takes it             takes it
//   readers        waits                takes it, unless a writer has waited for 1 ms
//   a writer       waits                waits
//
// Works with std::unique_lock, std::shared_lock, std::scoped_lock. Not recursive: a reader that locks again while a
// writer waits may block itself for ever. All members: anywhere.
//
// Fairness: the last reader hands the lock over to a waiting writer. Otherwise a free lock goes to the first that asks
// for it, even if others have waited longer. But once a waiter has waited for 1 ms, no other goes first: new readers
// wait behind a writer that has waited that long, and a writer that unlocks hands the lock over, to all readers that
// wait at that moment. The exception is a waiter that was woken before and has not had its turn to run since, as with
// mutex.
//
// It may be destroyed as soon as the last lock has returned and was unlocked, but not while somebody waits for it.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/sync_base.hpp>

#include <chrono>
#include <cstdint>
#include <shared_mutex>  // std::shared_lock, for those who use this header

namespace weft {

namespace detail {
enum class lock_side : bool { writer, reader };
class shared_mutex_queues;
struct shared_mutex_waiter;
}  // namespace detail

class shared_mutex {
 public:
  constexpr shared_mutex() noexcept = default;
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;

  // --- writing

  // Waits until nobody holds the lock, and takes it alone.
  void lock() {
    std::uint32_t free = 0;
    if (!take_alone(free)) [[unlikely]]
      lock_slow(detail::never_ns);
  }

  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t found = 0;
    return take_alone(found) || (found == waiters && try_lock_slow());
  }

  // As lock(), but waits at most d, or until tp. False: the time passed. Throws std::bad_alloc if there is no memory
  // for the timer.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& d) {
    return try_lock() || lock_slow(detail::deadline_in(d));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& tp) {
    return try_lock() || detail::wait_until_point(tp, [this](std::int64_t t) { return lock_slow(t); });
  }

  // Fatal if no writer holds it.
  void unlock() noexcept {
    std::uint32_t held = writer;
    if (!word_.compare_exchange_strong(held, 0, std::memory_order_release, std::memory_order_relaxed)) [[unlikely]] {
      unlock_slow();
    }
  }

  // --- reading

  // Waits until no writer holds the lock or has waited for it for 1 ms, and takes a share.
  void lock_shared() {
    // A visit (shared_mutex.cpp). acquire: sees what the last writer did.
    if ((word_.fetch_add(reader, std::memory_order_acquire) & (writer | waiters)) != 0) [[unlikely]]
      lock_shared_visiting();
  }

  // Takes a share if that is possible at once. False also if a writer has waited for 1 ms.
  [[nodiscard]] bool try_lock_shared() noexcept {
    return try_share() || ((word_.load(std::memory_order_seq_cst) & writer) == 0 && try_lock_shared_slow());
  }

  // As lock_shared(), but waits at most d, or until tp. False: the time passed. Throws std::bad_alloc if there is no
  // memory for the timer.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& d) {
    return try_lock_shared() || lock_shared_slow(detail::deadline_in(d));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& tp) {
    return try_lock_shared() || detail::wait_until_point(tp, [this](std::int64_t t) { return lock_shared_slow(t); });
  }

  // Fatal if no reader holds it.
  void unlock_shared() noexcept {
    // release: the next writer sees what was done under the share.
    const std::uint32_t left = word_.fetch_sub(reader, std::memory_order_release) - reader;
    if ((left & (writer | waiters | below_zero)) != 0) [[unlikely]]
      unlock_shared_slow(this, left);
  }

 private:
  static constexpr std::uint32_t writer = 1;   // a writer holds it
  static constexpr std::uint32_t waiters = 2;  // somebody must be woken: the word changes as shared_mutex.cpp says
  static constexpr std::uint32_t reader = 4;   // one more reader holds it, or visits
  static constexpr std::uint32_t below_zero = std::uint32_t{1} << 31;  // more readers have left than came

  WEFT_API bool lock_slow(std::int64_t deadline);
  WEFT_API bool try_lock_slow() noexcept;
  WEFT_API bool lock_shared_slow(std::int64_t deadline);
  WEFT_API void lock_shared_visiting();
  WEFT_API bool try_lock_shared_slow() noexcept;
  WEFT_API void unlock_slow() noexcept;
  WEFT_API static void unlock_shared_slow(const void* address, std::uint32_t left) noexcept;

  // Takes the lock alone if the word is `found`, 0; otherwise `found` is what the word is.
  bool take_alone(std::uint32_t& found) noexcept {
    return word_.compare_exchange_strong(found, writer, std::memory_order_acquire, std::memory_order_relaxed);
  }

  // Takes a share, without a visit, if no writer holds the lock and nobody must be woken.
  bool try_share() noexcept {
    for (;;) {
      // seq_cst: sees an unlock() that has returned (shared_mutex.cpp: pass_on).
      std::uint32_t w = word_.load(std::memory_order_seq_cst);
      if ((w & (writer | waiters)) != 0) return false;
      if (word_.compare_exchange_strong(w, w + reader, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
      detail::spin_backoff();
    }
  }

  bool end_visit() noexcept;
  static void pass_on_left(const void* address) noexcept;

  // Called under the bucket.
  using queues = detail::shared_mutex_queues;
  using side = detail::lock_side;
  void settle(queues& q) noexcept;
  struct turn;
  enum class if_held : bool { mark, leave };
  bool take(queues& q, side s, const detail::shared_mutex_waiter* queued, if_held h) noexcept;
  void pass_on(queues& q, detail::wake_list& woken, side from) noexcept;
  void pass_on_if_left(queues& q, detail::wake_list& woken) noexcept;
  void let_readers_in(queues& q, detail::wake_list& woken) noexcept;
  void give_up(queues& q, detail::shared_mutex_waiter& w, detail::wake_list& woken) noexcept;

  bool wait(side s, std::int64_t deadline);
  bool try_under_bucket(side s) noexcept;
  bool try_take(side s) noexcept {
    std::uint32_t free = 0;
    return s == side::reader ? try_share() : take_alone(free);
  }

  detail::atomic<std::uint32_t> word_{0};
};

}  // namespace weft
