// Guards keep a stack's overflow from its neighbours. For the three kinds, see stack.hpp.
#pragma once

#include "runtime/atomic.hpp"

#include <cstddef>
#include <cstdint>

namespace weft::rt {

inline constexpr std::size_t page = 4096;

enum class guard_kind : std::uint8_t { madvise, mprotect, canary };
inline constexpr int guard_kinds = 3;

// From now on, no kind better than `best` is used. For WEFT_DEBUG=guards, which shows a program as on an old kernel.
void limit_guards(guard_kind best) noexcept;

// Guards the pages at lo[0] to lo[n - 1] (at most most_advised_at_once), and stores in kinds[] how. `lowest` is the
// first page of the slab. It gets an inaccessible page even when these run out, so that an overflow ends there at the
// latest. When a stack gets only a canary for the first time, a warning on stderr says what a canary does not do.
void install_guards(std::byte* const* lo, std::size_t n, const std::byte* lowest, guard_kind* kinds) noexcept;

// Removes the guards of a mapping that has `count` of each kind. False: they stay.
bool remove_guards(std::byte* base, std::size_t bytes, const std::size_t (&count)[guard_kinds]) noexcept;

inline constinit atomic<std::size_t> installed_guards[guard_kinds];  // relaxed: only numbers
inline std::size_t guards_installed(guard_kind k) noexcept {
  return installed_guards[static_cast<int>(k)].load(relaxed);
}

void write_canary(std::byte* lo) noexcept;
bool canary_intact(const std::byte* lo) noexcept;

}  // namespace weft::rt
