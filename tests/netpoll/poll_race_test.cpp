// The poll word under ThreadSanitizer, with real threads: a thread that takes a goroutine sees what the goroutine left,
// and a goroutine that finds a notification sees what was done before. Kills the mutants poll-*-relaxed.

#include "netpoll/poll_desc.hpp"
#include "tests/support/catch.hpp"

#include <thread>

using namespace weft::rt;

namespace {

struct waited {
  poll_desc pd;
  G g;
  int value = 0;

  // Relaxed, so that it orders nothing.
  std::uintptr_t word() const { return pd.read.word.load(relaxed); }
  G* event() {
    g_list woken;
    poll_event(&pd, pd.tag(), {.readable = true, .writable = false, .special = false}, woken);
    return woken.pop_front();
  }
};

template <class Condition>
void wait_until(Condition c) {
  while (!c()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("poll word: who takes a goroutine sees what it wrote before it slept") {
  waited w;
  std::thread sleeper([&] {
    (void)poll_prepare_wait(&w.pd, poll_mode::read);
    w.value = 1;
    (void)poll_commit(&w.pd, poll_mode::read, &w.g);
  });
  wait_until([&] { return w.word() > poll_desc::wait; });
  CHECK(w.event() == &w.g);
  CHECK(w.value == 1);
  sleeper.join();
}

TEST_CASE("poll word: who finds a notification does not sleep, and sees what was done before it") {
  waited w;
  std::thread poller([&] {
    w.value = 1;
    (void)w.event();
  });
  wait_until([&] { return w.word() == poll_desc::ready; });
  CHECK_FALSE(poll_prepare_wait(&w.pd, poll_mode::read));
  CHECK(w.value == 1);
  poller.join();
}

TEST_CASE("poll word: who is notified while it goes to sleep sees what was done before") {
  waited w;
  CHECK(poll_prepare_wait(&w.pd, poll_mode::read));
  std::thread poller([&] {
    w.value = 1;
    (void)w.event();
  });
  wait_until([&] { return w.word() == poll_desc::ready; });
  CHECK_FALSE(poll_commit(&w.pd, poll_mode::read, &w.g));
  poll_finish_wait(&w.pd, poll_mode::read);
  CHECK(w.value == 1);
  poller.join();
}
