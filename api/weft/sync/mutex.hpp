// mutex: who holds it is alone. Two bytes.
//
//   state     lock                      try_lock   unlock
//   free      takes it                  true       fatal: unlock of an unlocked mutex
//   held      waits                     false      frees it; or, if somebody waited longer than 1 ms, hands it over
//
// Works with std::unique_lock, std::lock_guard, std::scoped_lock and condition_variable. Not recursive. It belongs to
// no goroutine: another one may unlock it. Waiting parks the goroutine, never the thread; a thread that is not weft's,
// which may use it too, with or without a runtime, blocks.
//
// Fairness: a free mutex goes to whoever comes first, also past waiters (that is what makes it fast); but no waiter is
// passed by once it has waited for 1 ms: then unlock hands the mutex to it. The exception: one that was woken before,
// and whose turn to run has not come since. Where all processors are busy with goroutines that compute, that is a time
// slice (10 ms) or more.
//
// A mutex may be destroyed as soon as the last lock() has returned and was unlocked: an unlock that made that lock()
// possible no longer touches it. Destroying one that somebody waits for is not allowed.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/sync_base.hpp>

#include <array>
#include <chrono>
#include <cstdint>

namespace weft {

namespace detail {

struct mutex_queue;

// How many mutexes with waiters that nobody woke yet there are at addresses of one kind. The protocol ("asymmetric
// unlock") is in api/src/sync/mutex.cpp.
struct alignas(64) mutex_bell {
  detail::atomic<std::uint32_t> rings{0};
};
inline constexpr unsigned mutex_bell_bits = 8;
extern WEFT_API std::array<mutex_bell, 1u << mutex_bell_bits> mutex_bells;

inline std::uint32_t address_hash(const void* p) noexcept {
  return (static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p)) * 0x9E3779B1u) >> (32 - mutex_bell_bits);
}

}  // namespace detail

class mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  // Waits until the mutex is free and takes it. Anywhere.
  void lock() {
    if (!take()) [[unlikely]]
      lock_slow(detail::never_ns);
  }

  // Takes it if it is free; never waits. Anywhere.
  [[nodiscard]] bool try_lock() noexcept { return held_.load(std::memory_order_relaxed) == 0 && take(); }

  // Waits at most d, or until tp; false: the time passed. Anywhere. std::bad_alloc: there was no memory for the timer.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& d) {
    return try_lock() || lock_slow(detail::deadline_in(d));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& tp) {
    return try_lock() || detail::wait_until_point(tp, [this](std::int64_t t) { return lock_slow(t); });
  }

  // Frees it, or hands it to a waiter. Fatal if it is not locked. Anywhere.
  void unlock() noexcept {
    if (must_wake_.load(std::memory_order_relaxed) != 0 || held_.load(std::memory_order_relaxed) == 0) [[unlikely]] {
      return unlock_slow();
    }
    // "asymmetric unlock": U1 free it, U2 look at the bell. After U1 the mutex may be gone.
    detail::mutex_bell& bell = detail::mutex_bells[detail::address_hash(this)];
    held_.store(0, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (bell.rings.load(std::memory_order_relaxed) != 0) [[unlikely]]
      answer_bell(this);
  }

 private:
  friend struct detail::mutex_queue;

  // acquire: sees what the last holder wrote before its release in unlock.
  bool take() noexcept {
    std::uint8_t free = 0;
    return held_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }

  WEFT_API bool lock_slow(std::int64_t deadline);
  WEFT_API void unlock_slow() noexcept;
  WEFT_API static void answer_bell(const void* address) noexcept;

  detail::atomic<std::uint8_t> held_{0};
  detail::atomic<std::uint8_t> must_wake_{0};  // not 0: unlock_slow() looks who is to be woken
};

}  // namespace weft
