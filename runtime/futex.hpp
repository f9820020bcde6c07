// The three futex calls the runtime uses. They do not hide EINTR and spurious returns: each caller loops on its own
// word anyway.
#pragma once

#include "runtime/atomic.hpp"
#include "runtime/clock.hpp"

#include <cstdint>

namespace weft::rt {

// Sleeps while *word == expected.
void futex_wait(atomic<std::uint32_t>* word, std::uint32_t expected) noexcept;

// The same, at most until `deadline` (nanotime). Returns false if the deadline has passed.
bool futex_wait_until(atomic<std::uint32_t>* word, std::uint32_t expected, nanos deadline) noexcept;

// Wakes up to `count` sleepers. The word may be gone already: then no thread is woken, and nothing is touched.
void futex_wake(atomic<std::uint32_t>* word, int count) noexcept;

}  // namespace weft::rt
