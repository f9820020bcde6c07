// A timer's state under ThreadSanitizer, with real threads: the fields written in one state are read in the next, by
// threads that learn of it by the state alone. Kills the mutants timers-*-relaxed.

#include "tests/support/catch.hpp"
#include "timers/timer_heap.hpp"

#include <thread>

using namespace weft::rt;

namespace {

std::uint64_t ran = 0;
void note_seq(timer*, std::uint64_t seq, nanos) noexcept { ran = seq; }

struct noted_timer : timer {
  noted_timer() {
    dispose = [](timer* t) noexcept {
      ran = static_cast<noted_timer*>(t)->note;
      delete static_cast<noted_timer*>(t);
    };
  }
  std::uint64_t note = 0;
};

// Relaxed, so that it orders nothing.
void wait_for(const timer& t, timer_status s) {
  while (t.status.load(relaxed) != s) std::this_thread::yield();
}

}  // namespace

TEST_CASE("timer state: who runs a timer sees what it was changed to") {
  timer_heap heap;
  timer t;
  bool any = false;
  (void)change_timer(heap, &t, {10, 0, note_seq, 1});
  std::thread changes([&] { (void)change_timer(heap, &t, {20, 0, note_seq, 2}); });
  wait_for(t, timer_status::modified_later);
  heap.check(30, false, &any);
  CHECK(any);
  CHECK(ran == 2);
  changes.join();
}

TEST_CASE("timer state: who stops a timer sees in which heap it is") {
  timer_heap heap;
  timer t;
  t.when = 10;
  std::thread adds([&] {
    heap.make_room();
    (void)heap.add(&t);
  });
  wait_for(t, timer_status::waiting);
  CHECK(del_timer(&t, nullptr));
  adds.join();
  CHECK(heap.deleted_count() == 1);
}

TEST_CASE("timer state: who arms a timer anew does so after it was run") {
  timer_heap heap, other;
  timer t;
  bool any = false;
  (void)change_timer(heap, &t, {10, 0, note_seq, 1});
  std::thread runs([&] { heap.check(30, false, &any); });
  wait_for(t, timer_status::no_status);
  (void)change_timer(other, &t, {40, 0, note_seq, 2});
  runs.join();
  CHECK(any);
  CHECK(ran == 1);
}

TEST_CASE("timer references: the heap, when it is the last, sees what the owner did before he let go") {
  timer_heap heap;
  auto* t = new noted_timer;
  (void)change_timer(heap, t, {10, 0, note_seq, 1});
  std::thread owner([&] {
    (void)del_timer(t, nullptr);
    t->note = 3;
    t->release();
  });
  while (t->references.load(relaxed) != 1) std::this_thread::yield();
  heap.tidy();
  CHECK(ran == 3);
  owner.join();
}
