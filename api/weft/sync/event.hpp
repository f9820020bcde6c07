// event: something that has happened, or has not. While the event is set, wait() returns at once. It stays set until
// reset().
//
// An event may be destroyed as soon as its last wait() has returned: the set() that made it return does not touch it
// any more. All members: anywhere.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/sync_base.hpp>

#include <chrono>
#include <cstdint>

namespace weft {

class event {
 public:
  constexpr event() noexcept : event(false) {}
  constexpr explicit event(bool set) noexcept : word_(set ? is_on : 0) {}
  event(const event&) = delete;
  event& operator=(const event&) = delete;

  // Sets the event and wakes all that wait at that moment. They return even if reset() follows at once.
  void set() noexcept {
    std::uint32_t w = word_.load(std::memory_order_relaxed);
    while ((w & waiters) == 0) {
      // release: what was done before is seen after wait(). That must hold even if the event is set already, so the
      // word is written in any case.
      if (word_.compare_exchange_weak(w, is_on, std::memory_order_release, std::memory_order_relaxed)) return;
    }
    set_slow();
  }

  void reset() noexcept {
    std::uint32_t on = is_on;
    // acquire: the set() that this takes back may be a later one than that which ended wait(). What was done before it
    // is seen, too.
    word_.compare_exchange_strong(on, 0, std::memory_order_acquire, std::memory_order_relaxed);
  }

  bool is_set() const noexcept { return word_.load(std::memory_order_acquire) == is_on; }

  // Waits until the event is set.
  void wait() const {
    if (!is_set()) wait_slow(detail::never_ns);
  }

  // As wait(), but for at most d, or until tp. False: the time passed. Throws std::bad_alloc if there is no memory for
  // the timer.
  template <class Rep, class Period>
  bool wait_for(const std::chrono::duration<Rep, Period>& d) const {
    return is_set() || wait_slow(detail::deadline_in(d));
  }
  template <class Clock, class Duration>
  bool wait_until(const std::chrono::time_point<Clock, Duration>& tp) const {
    return is_set() || detail::wait_until_point(tp, [this](std::int64_t t) { return wait_slow(t); });
  }

 private:
  static constexpr std::uint32_t is_on = 1;
  static constexpr std::uint32_t waiters = 2;  // not set, and the queue is not empty; changes under the bucket's lock

  WEFT_API void set_slow() noexcept;
  WEFT_API bool wait_slow(std::int64_t deadline) const;

  mutable detail::atomic<std::uint32_t> word_;
  mutable detail::sync_queue queue_{};
};

}  // namespace weft
