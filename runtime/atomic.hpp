// The one name under which the runtime uses atomics.
//
// Tests define WEFT_INTERLEAVE, and provide the functions that are declared for it here. Then every atomic access is a
// place where a seeded schedule may switch threads, and a store that is not seq_cst may stay unseen by other threads
// for a while, as on x86-64. This drives protocols through their rare interleavings.
#pragma once

#include <atomic>

#if defined(WEFT_INTERLEAVE)
#include <cstddef>
#endif

namespace weft::rt {

#if defined(WEFT_INTERLEAVE)

void interleave_point() noexcept;
// The calling thread's stores that other threads do not see yet, oldest first ("store buffer").
bool interleave_keep(void* where, const void* value, std::size_t size) noexcept;  // false: store it at once
bool interleave_kept(const void* where, void* value) noexcept;                    // false: no store to there is kept
void interleave_show() noexcept;                                                  // makes all kept stores visible

template <class T>
class atomic {
 public:
  constexpr atomic() noexcept = default;
  constexpr atomic(T v) noexcept : v_(v) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(std::memory_order o) const noexcept {
    interleave_point();
    T mine;
    return interleave_kept(&v_, &mine) ? mine : v_.load(o);
  }
  void store(T v, std::memory_order o) noexcept {
    interleave_point();
    if (o != std::memory_order_seq_cst && interleave_keep(&v_, &v, sizeof v)) return;
    interleave_show();
    v_.store(v, o);
  }
  T exchange(T v, std::memory_order o) noexcept { return shown().exchange(v, o); }
  bool compare_exchange_strong(T& want, T v, std::memory_order ok, std::memory_order no) noexcept {
    return shown().compare_exchange_strong(want, v, ok, no);
  }
  bool compare_exchange_weak(T& want, T v, std::memory_order ok, std::memory_order no) noexcept {
    return shown().compare_exchange_strong(want, v, ok, no);
  }
  template <class U>
  T fetch_add(U d, std::memory_order o) noexcept {
    return shown().fetch_add(d, o);
  }
  template <class U>
  T fetch_sub(U d, std::memory_order o) noexcept {
    return shown().fetch_sub(d, o);
  }
  T fetch_or(T d, std::memory_order o) noexcept { return shown().fetch_or(d, o); }
  T fetch_and(T d, std::memory_order o) noexcept { return shown().fetch_and(d, o); }

 private:
  // An instruction that reads and writes at once first makes all earlier stores visible, as on the processor.
  std::atomic<T>& shown() noexcept {
    interleave_point();
    interleave_show();
    return v_;
  }

  std::atomic<T> v_{};
};

#else

template <class T>
using atomic = std::atomic<T>;

#endif

inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;
inline constexpr auto seq_cst = std::memory_order_seq_cst;

// One pause of a spin loop. On today's x86 it takes 20 to 40 ns, and the counts of pauses in this library assume that.
// On aarch64 it is a barrier, at which the core waits for about as long; `yield` would take no time.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace weft::rt
