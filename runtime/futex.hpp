// The three futex calls the runtime uses. EINTR and spurious returns are the caller's: each caller loops on
// its own word anyway.
#pragma once

#include "runtime/atomic.hpp"
#include "runtime/clock.hpp"

#include <cstdint>

namespace weft::rt {

// Sleeps while *word == expected.
void futex_wait(atomic<std::uint32_t>* word, std::uint32_t expected) noexcept;

// The same until `deadline` (nanotime); false if it has passed.
bool futex_wait_until(atomic<std::uint32_t>* word, std::uint32_t expected, nanos deadline) noexcept;

// Wakes up to `count` sleepers. The word may be gone already: then nobody is woken and nothing is touched.
void futex_wake(atomic<std::uint32_t>* word, int count) noexcept;

}  // namespace weft::rt
