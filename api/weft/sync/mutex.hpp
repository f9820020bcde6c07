// mutex: mutual exclusion between goroutines. Two bytes.
//
//   state     lock                      try_lock   unlock
//   free      takes it                  true (*)   fatal: unlock of an unlocked mutex
//   held      waits                     false      frees it; or, if a waiter has waited for 1 ms, hands it over
//   (*) or false, just after an unlock
//
// Works with std::unique_lock, std::lock_guard, std::scoped_lock and condition_variable. Not recursive. No goroutine
// owns a mutex: another one may unlock it. Waiting parks the goroutine, never its thread. Threads that are not weft's
// may use it, too, with or without a runtime; they block as threads.
//
// Fairness: a free mutex goes to the first that asks for it, even if others have waited longer; that is what makes it
// fast. But once a waiter has waited for 1 ms, no other may take the mutex before it: the next unlock hands it over.
// The exception is a waiter that was woken before and has not had its turn to run since. If all Ps are held by
// goroutines that compute, that takes a millisecond or two with one P (the first time more), and up to a time slice
// (10 ms) with several; and longer behind others that are ready to run.
//
// A mutex may be destroyed as soon as the last lock() has returned and was unlocked: the unlock() that made that lock()
// possible does not touch the mutex any more. It must not be destroyed while somebody waits for it.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/sync_base.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>  // std::unique_lock and the like, for those who use this header

namespace weft {

namespace detail {

struct mutex_queue;

// Counts the mutexes that have waiters to be woken, among the mutexes whose addresses have the same hash. The protocol
// ("asymmetric unlock") is in api/src/sync/mutex.cpp.
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

  // Waits until the mutex is free, and takes it. Anywhere.
  void lock() {
    if (!take()) [[unlikely]]
      lock_slow(detail::never_ns);
  }

  // Takes the mutex if it is free; never waits. As std::mutex's it may fail although nobody holds the mutex: where an
  // unlock() on another processor has returned only just now. So who leaves work to the holder because of a false must
  // not count on a look that the holder takes after its unlock(). A semaphore of one says for sure. Anywhere.
  [[nodiscard]] bool try_lock() noexcept { return held_.load(std::memory_order_relaxed) == 0 && take(); }

  // As lock(), but waits at most d, or until tp. False: the time passed. Throws std::bad_alloc if there is no memory
  // for the timer. Anywhere.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& d) {
    return try_lock() || lock_slow(detail::deadline_in(d));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& tp) {
    return try_lock() || detail::wait_until_point(tp, [this](std::int64_t t) { return lock_slow(t); });
  }

  // Frees the mutex, or hands it to a waiter. Fatal if it is not locked. Anywhere.
  void unlock() noexcept {
    if (must_wake_.load(std::memory_order_relaxed) != 0 || held_.load(std::memory_order_relaxed) == 0) [[unlikely]] {
      return unlock_slow();
    }
    // "asymmetric unlock": U1 frees the mutex, U2 looks at the bell. After U1 the mutex may be gone.
    detail::mutex_bell& bell = detail::mutex_bells[detail::address_hash(this)];
    held_.store(0, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (bell.rings.load(std::memory_order_relaxed) != 0) [[unlikely]]
      answer_bell(this);
  }

 private:
  friend struct detail::mutex_queue;

  // acquire: the caller sees what the last holder wrote before the release in unlock.
  bool take() noexcept {
    std::uint8_t free = 0;
    return held_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }

  WEFT_API bool lock_slow(std::int64_t deadline);
  WEFT_API void unlock_slow() noexcept;
  WEFT_API static void answer_bell(const void* address) noexcept;

  detail::atomic<std::uint8_t> held_{0};
  detail::atomic<std::uint8_t> must_wake_{0};  // not 0: unlock() goes to unlock_slow(), to see whom to wake
};

}  // namespace weft
