// The wake word of a G: of all parties that want to end a wait exactly one wins, and a party that comes late, for an
// earlier wait, never does.
//
// Kills these mutants (tests/mutants): wake-any-ticket, wake-without-cas, wake-same-number.

#include "runtime/g.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/interleave.hpp"

#include <string>
#include <vector>

using namespace weft::rt;
using weft::test::interleaving;
using weft::test::seeds;

namespace {

// A goroutine waits several times. Each wait can be ended by `parties` wakers, which may come late, and, if `gives_up`,
// by the goroutine itself (a time limit).
std::string waits_and_wakers(std::uint64_t seed, int parties, bool gives_up) {
  constexpr int waits = 4;
  interleaving threads(seed);
  G g;
  std::vector<wait_ticket> published;  // the ticket of wait i, seen by every party
  std::vector<int> ended(waits, 0);
  std::vector<int> value(waits, 0);  // written by the winner before it lets the goroutine go on

  threads.add([&] {
    for (int i = 0; i < waits; ++i) {
      wait_ticket t = g.begin_wait();
      interleaving::check(t != no_ticket, "a wait got the ticket that means none");
      published.push_back(t);
      if (gives_up && threads.random().below(2) == 0 && g.claim(t)) {
        ++ended[i];
      } else {
        interleaving::wait_until([&] { return ended[i] > 0; });
        interleaving::check(value[i] == 1, "woken before the winner was done");
      }
    }
  });
  for (int p = 0; p < parties; ++p) {
    threads.add([&] {
      for (int i = 0; i < waits; ++i) {
        interleaving::wait_until([&] { return published.size() > static_cast<std::size_t>(i); });
        wait_ticket t = published[i];
        int before = ended[i];
        if (!g.claim(t)) continue;
        interleaving::check(before == 0 && ended[i] == 0, "one wait was ended twice");
        interleaving::check(published.size() == static_cast<std::size_t>(i) + 1, "a late claim hit a later wait");
        value[i] = 1;
        ++ended[i];
      }
    });
  }
  std::string wrong = threads.run();
  if (!wrong.empty()) return wrong;
  for (int i = 0; i < waits; ++i) {
    if (ended[i] != 1) return "wait " + std::to_string(i) + " was ended " + std::to_string(ended[i]) + " times";
  }
  return "";
}

}  // namespace

TEST_CASE("wake word: one of three wakers wins each wait, late ones never do") {
  for (std::uint64_t seed = 0; seed < seeds(10000); ++seed) {
    std::string wrong = waits_and_wakers(seed, 3, false);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}

TEST_CASE("wake word: a goroutine that ends its own wait takes part as one of the wakers") {
  for (std::uint64_t seed = 0; seed < seeds(10000); ++seed) {
    std::string wrong = waits_and_wakers(seed, 2, true);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}

TEST_CASE("wake word: an abandoned goroutine is claimed by nobody, with any ticket") {
  G g;
  g.state.store(g_state::waiting, relaxed);
  wait_ticket old = g.begin_wait();
  CHECK(g.claim(old));
  wait_ticket now = g.begin_wait();
  CHECK_FALSE(g.claim(old));
  g.abandon();
  CHECK(g.get_state() == g_state::abandoned);
  CHECK_FALSE(g.claim(now));
  CHECK_FALSE(g.claim(now + 1));
  CHECK_FALSE(g.claim(no_ticket));
}

TEST_CASE("wake word: without a ticket a wait is claimed as long as the goroutine lives") {
  G g;
  g.state.store(g_state::waiting, relaxed);
  CHECK(g.claim(no_ticket));
  CHECK(g.claim(no_ticket));
}
