// The poll words through their interleavings: a goroutine that waits, the poller that finds the descriptor ready, a
// deadline, and a thread that closes the descriptor. poll_desc.cpp is compiled into this test; the system's poller is
// left out.
//
// Kills these mutants (tests/mutants): poll-commit-blind, poll-no-recheck, poll-deadline-seq, poll-drop-notification,
// poll-old-tag, poll-deadline-published-first.

#include "netpoll/poll_desc.hpp"
#include "netpoll/netpoll.hpp"
#include "sched/io.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/interleave.hpp"

#include <cstdlib>
#include <new>
#include <string>

using namespace weft::rt;
using weft::test::interleaving;
using weft::test::seeds;

// --- in place of netpoll/epoll.cpp
namespace weft::rt {
int netpoll_init() noexcept { return 0; }
bool netpoll_initialized() noexcept { return true; }
int netpoll_add(int, poll_desc*, std::uint32_t) noexcept { return 0; }
void netpoll_remove(int) noexcept {}
void netpoll(nanos, g_list&) noexcept {}
void netpoll_break() noexcept {}
}  // namespace weft::rt

// The array of a timer heap grows by realloc, which the linker redirects to this function.
constinit bool no_memory = false;
extern "C" void* __real_realloc(void*, std::size_t);
extern "C" void* __wrap_realloc(void* at, std::size_t size) { return no_memory ? nullptr : __real_realloc(at, size); }

namespace {

// A goroutine whose sleeps are counted against its wake-ups.
struct sleeper {
  G g;
  int sleeps = 0, wakes = 0;
};
sleeper* the_sleeper = nullptr;

void wake(G* g) noexcept {
  interleaving::check(g == &the_sleeper->g, "somebody else is woken");
  interleaving::check(the_sleeper->wakes < the_sleeper->sleeps, "woken although it does not sleep");
  ++the_sleeper->wakes;
}
void wake_all(g_list& woken) {
  while (G* g = woken.pop_front()) wake(g);
}

// Does what sched/io.cpp does: waits until the descriptor is ready, or until there is a reason not to wait.
poll_status io_wait(poll_desc* pd, poll_mode m) {
  poll_status s = poll_check(pd, m);
  if (s != poll_status::ok) return s;
  if (poll_prepare_wait(pd, m)) {
    // In the real runtime, the goroutine is off its stack when it commits. Whoever finds it may wake it at once.
    ++the_sleeper->sleeps;
    int number = the_sleeper->sleeps;
    if (!poll_commit(pd, m, &the_sleeper->g)) {
      interleaving::check(the_sleeper->wakes == number - 1, "woken although it did not go to sleep");
      ++the_sleeper->wakes;  // it goes on by itself
    }
    interleaving::wait_until([&] { return the_sleeper->wakes >= number; });
    poll_finish_wait(pd, m);
  }
  return poll_check(pd, m);
}

poll_desc* open_one() {
  int error = 1;
  poll_desc* pd = poll_open(99, &error);
  interleaving::check(pd && error == 0, "a descriptor that cannot be opened");
  return pd;
}

// The poller reports every byte. The reader takes what is there, and waits if there is nothing. It must get all bytes.
std::string edges(std::uint64_t seed, poll_mode m) {
  interleaving threads(seed);
  sleeper s;
  the_sleeper = &s;
  poll_desc* pd = open_one();
  constexpr int bytes = 6;
  int written = 0, got = 0;
  threads.add([&] {
    while (got < bytes) {
      if (poll_reset(pd, m) != poll_status::ok) interleaving::fail("nobody closed it");
      if (got < written) {  // the read call
        got = written;
        continue;
      }
      if (io_wait(pd, m) != poll_status::ok) interleaving::fail("nobody closed it");
    }
  });
  threads.add([&] {
    for (int i = 0; i < bytes; ++i) {
      ++written;
      g_list woken;
      poll_event(pd, pd->tag(), {m == poll_mode::read, m == poll_mode::write, false}, woken);
      wake_all(woken);
    }
  });
  std::string wrong = threads.run();
  poll_free(pd);
  if (!wrong.empty()) return wrong;
  return s.wakes == s.sleeps ? "" : "sleeps and wake-ups differ";
}

enum class end_by { close, deadline, past_deadline, deadline_then_close };

// The reader waits again and again until it is told why it must not.
std::string ended(std::uint64_t seed, end_by how, bool with_events) {
  interleaving threads(seed);
  auto& random = threads.random();
  sleeper s;
  the_sleeper = &s;
  timer_heap heap;
  poll_desc* pd = open_one();
  poll_status last = poll_status::ok;
  nanos now = 100;
  bool reader_done = false;
  threads.add([&] {
    while ((last = io_wait(pd, poll_mode::read)) == poll_status::ok) {}
    reader_done = true;
  });
  if (with_events) {
    threads.add([&] {
      for (int i = 0; i < 3; ++i) {
        g_list woken;
        poll_event(pd, pd->tag(), {true, random.below(2) == 0, false}, woken);
        wake_all(woken);
      }
    });
  }
  threads.add([&] {
    g_list woken;
    if (how != end_by::close) {
      nanos deadline = how == end_by::past_deadline ? -1 : now + 5;
      (void)poll_set_deadline(heap, pd, poll_mode::read, deadline, woken);
      wake_all(woken);
    }
    if (how == end_by::deadline) {
      // The deadline is set again, later and then earlier: what the timer of the first setting does is stale.
      (void)poll_set_deadline(heap, pd, poll_mode::read, now + 9, woken);
      (void)poll_set_deadline(heap, pd, poll_mode::read, now + 7, woken);
      wake_all(woken);
    }
    if (how == end_by::close || how == end_by::deadline_then_close) {
      poll_evict(pd, woken);
      wake_all(woken);
    }
  });
  threads.add([&] {
    while (!reader_done) {
      bool ran = false;
      heap.check(now, true, &ran);
      ++now;
    }
  });
  std::string wrong = threads.run();
  if (!wrong.empty()) return wrong;
  if (s.wakes != s.sleeps) return "sleeps and wake-ups differ";
  poll_status wanted = how == end_by::close ? poll_status::closing : poll_status::timed_out;
  if (last != wanted && !(how == end_by::deadline_then_close && last == poll_status::closing)) return "a wrong reason";
  g_list woken;
  if (how == end_by::deadline || how == end_by::past_deadline) poll_evict(pd, woken);
  if (!woken.empty()) return "somebody still waits";
  heap.clear();
  poll_free(pd);
  return "";
}

}  // namespace

TEST_CASE("poll words: no notification is lost, in either direction") {
  for (std::uint64_t seed = 0; seed < seeds(20000); ++seed) {
    std::string wrong = edges(seed, seed % 2 == 0 ? poll_mode::read : poll_mode::write);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}

TEST_CASE("poll words: close wakes who waits or is about to") {
  for (std::uint64_t seed = 0; seed < seeds(10000); ++seed) {
    std::string wrong = ended(seed, end_by::close, seed % 2 == 0);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}

TEST_CASE("poll words: a deadline wakes who waits, a stale one does not") {
  poll_set_ready(wake);
  for (std::uint64_t seed = 0; seed < seeds(10000); ++seed) {
    std::string wrong = ended(seed, end_by::deadline, seed % 2 == 0);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}

TEST_CASE("poll words: a deadline in the past wakes at once") {
  for (std::uint64_t seed = 0; seed < seeds(10000); ++seed) {
    std::string wrong = ended(seed, end_by::past_deadline, seed % 2 == 0);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}

TEST_CASE("poll words: a deadline and a close at once") {
  poll_set_ready(wake);
  for (std::uint64_t seed = 0; seed < seeds(10000); ++seed) {
    std::string wrong = ended(seed, end_by::deadline_then_close, seed % 2 == 0);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}

TEST_CASE("poll words: a timer that fires for an earlier deadline does nothing") {
  poll_set_ready(wake);
  timer_heap heap;
  sleeper s;
  the_sleeper = &s;
  poll_desc* pd = open_one();
  g_list woken;
  (void)poll_set_deadline(heap, pd, poll_mode::read, 10, woken);
  // The timer is taken off the heap and about to call its function ...
  timer* t = pd->read.passing;
  timer_function f = t->function;
  std::uint64_t seq = t->seq;
  // ... when the deadline is moved.
  (void)poll_set_deadline(heap, pd, poll_mode::read, 1000, woken);
  f(t, seq, 10);
  CHECK(poll_check(pd, poll_mode::read) == poll_status::ok);
  f(t, t->seq, 1000);
  CHECK(poll_check(pd, poll_mode::read) == poll_status::timed_out);
  CHECK(poll_check(pd, poll_mode::write) == poll_status::ok);
  (void)poll_set_deadline(heap, pd, poll_mode::read, 0, woken);
  CHECK(poll_check(pd, poll_mode::read) == poll_status::ok);
  poll_evict(pd, woken);
  heap.clear();
  poll_free(pd);
}

TEST_CASE("poll words: a deadline for which there is no memory changes nothing") {
  poll_set_ready(wake);
  timer_heap heap, full;
  sleeper s;
  the_sleeper = &s;
  poll_desc* pd = open_one();
  g_list woken;
  auto set_in_vain = [&](nanos deadline) {
    no_memory = true;
    CHECK_THROWS_AS(poll_set_deadline(full, pd, poll_mode::read, deadline, woken), std::bad_alloc);
    no_memory = false;
  };
  set_in_vain(1000);  // there was no deadline
  CHECK(pd->read.deadline.load(relaxed) == 0);
  CHECK(poll_check(pd, poll_mode::read) == poll_status::ok);
  (void)poll_set_deadline(heap, pd, poll_mode::read, -1, woken);
  set_in_vain(1000);  // the deadline has passed
  CHECK(pd->read.deadline.load(relaxed) == -1);
  CHECK(poll_check(pd, poll_mode::read) == poll_status::timed_out);
  (void)poll_set_deadline(heap, pd, poll_mode::read, 10, woken);
  timer* t = pd->read.passing;
  timer_function f = t->function;
  std::uint64_t seq = t->seq;
  heap.clear();
  set_in_vain(1000);  // the deadline's timer has left the heap, and is about to call its function
  CHECK(pd->read.deadline.load(relaxed) == 10);
  f(t, seq, 10);
  CHECK(poll_check(pd, poll_mode::read) == poll_status::timed_out);
  CHECK(full.size() == 0);
  poll_evict(pd, woken);
  CHECK(woken.empty());
  poll_free(pd);
}

TEST_CASE("poll words: an event of the descriptor's earlier life is dropped") {
  poll_desc* pd = open_one();
  std::uint32_t old_tag = pd->tag();
  g_list woken;
  poll_evict(pd, woken);
  poll_free(pd);
  poll_desc* again = open_one();
  REQUIRE(again == pd);  // descriptors are reused, but only as descriptors
  CHECK(again->tag() != old_tag);
  poll_event(again, old_tag, {true, true, true}, woken);
  CHECK(again->read.word.load(relaxed) == poll_desc::nil);
  poll_event(again, again->tag(), {true, false, false}, woken);
  CHECK(again->read.word.load(relaxed) == poll_desc::ready);
  CHECK(again->write.word.load(relaxed) == poll_desc::nil);
  CHECK_FALSE(poll_prepare_wait(again, poll_mode::read));  // takes the notification that was kept
  CHECK(poll_prepare_wait(again, poll_mode::read));
  poll_finish_wait(again, poll_mode::read);
  CHECK(woken.empty());
  poll_evict(again, woken);
  CHECK(poll_check(again, poll_mode::read) == poll_status::closing);
  CHECK_FALSE(poll_prepare_wait(again, poll_mode::write));
  poll_free(again);
}
