// The note under ThreadSanitizer, with real threads: what was written before wakeup() can be read after the sleep, each
// time that the note is used. Kills the mutants note-wakeup-relaxed, note-sleep-relaxed, note-until-relaxed and
// note-late-relaxed.

#include "runtime/note.hpp"
#include "tests/support/catch.hpp"

#include <thread>

using namespace weft::rt;

namespace {

// Hands a value over, again and again. The thread that takes it sleeps by `sleep`.
template <class Sleep>
void hand_over(Sleep sleep) {
  constexpr int times = 500;
  note full, empty;
  int value = 0, wrong = 0;
  std::thread gives([&] {
    for (int i = 1; i <= times; ++i) {
      value = i;
      full.wakeup();
      empty.sleep();
      empty.clear();
    }
  });
  for (int i = 1; i <= times; ++i) {
    sleep(full);
    full.clear();
    wrong += value != i;
    empty.wakeup();
  }
  gives.join();
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("note: sleep") {
  hand_over([](note& n) { n.sleep(); });
}

TEST_CASE("note: sleep_until, woken in time") {
  hand_over([](note& n) {
    while (!n.sleep_until(nanotime() + second)) {}
  });
}

TEST_CASE("note: sleep_until, woken as the time passes") {
  hand_over([](note& n) {
    while (!n.sleep_until(0)) {}
  });
}
