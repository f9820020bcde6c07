// What a dump relies on (G::set_state), under ThreadSanitizer, with real threads: a thread without a P suspends its
// goroutine while the world stands still. Kills the mutant g-state-relaxed.

#include "runtime/g.hpp"
#include "tests/support/catch.hpp"

#include <thread>

using namespace weft::rt;

TEST_CASE("state: who reads that a goroutine is runnable reads what was written before") {
  for (int i = 0; i < 200; ++i) {
    G g;
    g.state.store(g_state::running, relaxed);
    std::thread suspends([&] {
      g.park_frame = &g;
      g.set_state(g_state::running, g_state::runnable);
    });
    while (g.state.load(acquire) != g_state::runnable) std::this_thread::yield();
    CHECK(g.park_frame == &g);
    suspends.join();
  }
}
