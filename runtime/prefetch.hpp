// Loads ahead of time what is in no cache.
#pragma once

#include <cstddef>

namespace weft::rt {

// How many cache lines to load from the place where a goroutine goes on upwards: the frames of a goroutine that waits
// in a function called by its own function. Otherwise it would wait for each of the lines in turn as it runs.
inline constexpr std::ptrdiff_t lines_of_frames = 8;

// Loads `lines` cache lines, from that of `from` on. (Always inline, because GCC 12 regards a function that only
// prefetches as one without effect, and drops the call.)
[[gnu::always_inline]] inline void load_lines(const void* from, std::ptrdiff_t lines) noexcept {
  for (std::ptrdiff_t i = 0; i < lines; ++i) __builtin_prefetch(static_cast<const std::byte*>(from) + i * 64);
}

}  // namespace weft::rt
