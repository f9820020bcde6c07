// Compiler and machine facts that every layer may use.
#pragma once

#include <cstddef>

#define WEFT_NOINLINE __attribute__((noinline))
#define WEFT_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEFT_UNLIKELY(x) __builtin_expect(!!(x), 0)

#if defined(__has_feature)
#define WEFT_HAS_FEATURE(x) __has_feature(x)
#else
#define WEFT_HAS_FEATURE(x) 0
#endif

// Invariants that cost time on every operation (lock ranks, queue ownership) are checked in builds that
// nobody measures: without optimisation, or under a sanitizer.
#if !defined(WEFT_CHECKS)
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    WEFT_HAS_FEATURE(address_sanitizer) || WEFT_HAS_FEATURE(thread_sanitizer)
#define WEFT_CHECKS 1
#else
#define WEFT_CHECKS 0
#endif
#endif

namespace weft::rt {

// Two lines, because the adjacent-line prefetcher of x86 pulls pairs.
inline constexpr std::size_t cache_line = 128;

}  // namespace weft::rt
