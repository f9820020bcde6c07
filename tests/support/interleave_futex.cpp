// Replaces runtime/futex.cpp and runtime/asymmetric.cpp. Outside of interleaving::run() there is only one thread, so
// nothing ever sleeps there.

#include "runtime/asymmetric.hpp"
#include "runtime/futex.hpp"

#include "tests/support/interleave.hpp"

namespace weft::rt {

using test::interleaving;

void futex_wait(atomic<std::uint32_t>* word, std::uint32_t expected) noexcept {
  if (word->load(relaxed) == expected && interleaving::running()) interleaving::sleep_on(word);
}

// Time is not modelled: the deadline has always passed, but other threads may run first, so a wake-up can still win.
bool futex_wait_until(atomic<std::uint32_t>* word, std::uint32_t expected, nanos) noexcept {
  if (word->load(relaxed) == expected) interleaving::leave();
  return false;
}

void futex_wake(atomic<std::uint32_t>* word, int count) noexcept { interleaving::wake(word, count); }

bool barriers_are_symmetric = false;

bool membarrier_works() noexcept { return true; }

void heavy_barrier() noexcept {
  interleave_point();
  interleaving::show_all_stores();
}

}  // namespace weft::rt
