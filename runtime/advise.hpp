// Gives the kernel one piece of advice (madvise) about many pages in one system call.
#pragma once

#include <cstddef>

namespace weft::rt {

inline constexpr std::size_t most_advised_at_once = 16;

// Gives `advice` for pages[0] to pages[n - 1], and returns for how many of them, counted from the first, that was done.
// `n` is at most most_advised_at_once. Returns 0 where the kernel has no such call (before Linux 6.15).
std::size_t advise_each(std::byte* const* pages, std::size_t n, int advice) noexcept;

}  // namespace weft::rt
