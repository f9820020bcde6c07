// Loading ahead of time what is in no cache.
#pragma once

#include <cstddef>

namespace weft::rt {

// The frames of a goroutine that waits in a function which its own calls: so many lines above where it goes on. One
// after the other, as it runs, each would be waited for.
inline constexpr std::ptrdiff_t lines_of_frames = 8;

// So many lines, from that of `from` on. (Inline: GCC 12 takes a function that does nothing but prefetch for one
// without effect, and drops the call.)
[[gnu::always_inline]] inline void load_lines(const void* from, std::ptrdiff_t lines) noexcept {
  for (std::ptrdiff_t i = 0; i < lines; ++i) __builtin_prefetch(static_cast<const std::byte*>(from) + i * 64);
}

}  // namespace weft::rt
