// fd_mutex under ThreadSanitizer, with real threads: what one call on a descriptor did is visible to the next one, and
// to the call that closes the descriptor. Kills the mutants fd-*-relaxed.

#include "api/src/net/fd_mutex.hpp"
#include "tests/support/hand_over.hpp"

using weft::net::entry;
using weft::net::fd_mutex;
using weft::net::leave;
using weft::net::side;
using weft::test::hand_over;
using weft::test::must;
using weft::test::several;
using weft::test::times;

namespace {

void enter(fd_mutex& m) { must(m.enter()); }
void lock(fd_mutex& m) { must(m.lock(side::read) == entry::entered); }
void close(fd_mutex& m) { must(m.close(false)); }

}  // namespace

TEST_CASE("fd_mutex: who has the turn sees what was done in the one before") {
  several<fd_mutex> m;
  hand_over(
      [&](int i) {
        lock(m[i]);
        must(m[i].unlock(side::read) == leave::stays);
      },
      [&](int i) { lock(m[i]); });
}

TEST_CASE("fd_mutex: who enters sees what was done in the calls before") {
  several<fd_mutex> m;
  hand_over(
      [&](int i) {
        enter(m[i]);
        must(m[i].exit() == leave::stays);
      },
      [&](int i) { enter(m[i]); });
}

TEST_CASE("fd_mutex: who closes the descriptor sees what was done in all calls") {
  several<fd_mutex> m;
  for (int i = 0; i <= times; ++i) {
    enter(m[i]);
    close(m[i]);
  }
  hand_over([&](int i) { must(m[i].exit() == leave::stays); }, [&](int i) { must(m[i].exit() == leave::last); });
}

TEST_CASE("fd_mutex: so does who closes it at the end of its turn") {
  several<fd_mutex> m;
  for (int i = 0; i <= times; ++i) {
    lock(m[i]);
    close(m[i]);
  }
  hand_over([&](int i) { must(m[i].exit() == leave::stays); },
            [&](int i) { must(m[i].unlock(side::read) == leave::last); });
}

TEST_CASE("fd_mutex: who sees it closed sees what was done before") {
  several<fd_mutex> m;
  hand_over([&](int i) { close(m[i]); }, [&](int i) { must(m[i].closed()); });
}
