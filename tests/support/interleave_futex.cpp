// In place of runtime/futex.cpp and runtime/asymmetric.cpp. Outside of interleaving::run() nobody contends, so nothing
// ever sleeps.

#include "runtime/asymmetric.hpp"
#include "runtime/futex.hpp"

#include "tests/support/interleave.hpp"

namespace weft::rt {

using test::interleaving;

void futex_wait(atomic<std::uint32_t>* word, std::uint32_t expected) noexcept {
  if (word->load(relaxed) == expected && interleaving::running()) interleaving::sleep_on(word);
}

// Time does not pass here: the deadline may come at any moment, or not before the wake-up.
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
