// Compiler and machine facts that every layer may use.
#pragma once

#include <cstddef>
#include <cstdint>

#define WEFT_NOINLINE __attribute__((noinline))
#define WEFT_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEFT_UNLIKELY(x) __builtin_expect(!!(x), 0)

// Functions and objects that are ready before the static initialisers of a program, which may use weft already. Without
// this, those come first where weft is linked statically.
#define WEFT_EARLY __attribute__((constructor(101)))
#define WEFT_EARLY_OBJECT __attribute__((init_priority(101)))

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

// The scheduler's sizes, and how often something gets its turn. The interleaving tests use small numbers, so that
// queues are full, and turns come, all the time.
#if defined(WEFT_INTERLEAVE)
inline constexpr std::uint32_t run_queue_size = 4, others_every = 3, global_queue_every = 5;
inline constexpr std::uint32_t short_bursts_at_first = 2, collisions_per_look = 2;
inline constexpr std::size_t free_blocks_at_most = 0;  // freed memory goes to the tests' operator delete
inline constexpr std::uint32_t cold_behind = 2;
inline constexpr std::uint32_t looks_of_vain_yields = 4;
#else
inline constexpr std::uint32_t run_queue_size = 256;  // a ring; what does not fit goes to the global queue
// So many dispatches inherit a time slice between two looks at the other goroutines. The second look in one slice lets
// them in (park.cpp).
inline constexpr std::uint32_t others_every = 1024;
inline constexpr std::uint32_t global_queue_every = 61;    // time slices; then the global queue comes first
inline constexpr std::uint32_t short_bursts_at_first = 8;  // needed before a promise (burst.cpp)
inline constexpr std::uint32_t collisions_per_look = 64;   // collisions of two Ps at channels (help_trial.cpp)
inline constexpr std::size_t free_blocks_at_most = 1024;   // in a P's cache, of each kind
// A goroutine that has waited behind this many others in the global queue is hardly in any cache any more, and its page
// is hardly in the TLB.
inline constexpr std::uint32_t cold_behind = 192;
// Of so many yields for which nobody is ready, one looks farther: so many take about as long as a system call.
inline constexpr std::uint32_t looks_of_vain_yields = 64;
#endif

// Two lines, because the adjacent-line prefetcher of x86 pulls pairs.
inline constexpr std::size_t cache_line = 128;

}  // namespace weft::rt
