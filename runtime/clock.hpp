// Time: the monotonic clock in nanoseconds, and the processor's tick counter for decisions that may be rough.
#pragma once

#include <cstdint>
#include <ctime>

namespace weft::rt {

using nanos = std::int64_t;

inline constexpr nanos microsecond = 1000;
inline constexpr nanos millisecond = 1000 * microsecond;
inline constexpr nanos second = 1000 * millisecond;
inline constexpr nanos forever = INT64_MAX;

// Reads CLOCK_MONOTONIC, the clock of std::chrono::steady_clock. This takes about 27 ns, so it is read once per
// scheduling round.
inline nanos nanotime() noexcept {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return static_cast<nanos>(ts.tv_sec) * second + ts.tv_nsec;
}

// Returns when + d; a sum that is too large becomes `forever`.
inline nanos saturating_add(nanos when, nanos d) noexcept {
  nanos sum;
  if (__builtin_add_overflow(when, d, &sum)) return d > 0 ? forever : INT64_MIN;
  return sum;
}

// Reads a counter that runs at a constant rate, which depends on the machine. It costs a third of what the clock costs.
// Only differences on one machine mean anything, and only roughly.
inline std::uint64_t cpu_ticks() noexcept {
#if defined(WEFT_INTERLEAVE)
  return static_cast<std::uint64_t>(nanotime());  // tests have their own time
#elif defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t v;
  asm volatile("mrs %0, cntvct_el0" : "=r"(v));
  return v;
#else
  return static_cast<std::uint64_t>(nanotime());
#endif
}

// Waits until all earlier loads from memory are complete. What follows begins only then.
inline void wait_for_loads() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace weft::rt
