// The clock for deadlines, compared with the real one.

#include "runtime/deadline_clock.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <chrono>
#include <thread>

using namespace weft::rt;

namespace {

void measure() {
  measure_ticks();
  REQUIRE(cpu_tick_rate.per_us > 0);
}

void wait_for_a_while() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

}  // namespace

TEST_CASE("deadline clock: right beside the thread's own looks at the clock") {
  measure();
  deadline_clock clock;
  nanos earlier = 0;
  long behind = 0, ahead = 0, back = 0;
  for (int i = 0; i < 300'000; ++i) {
    const nanos before = nanotime();
    const nanos now = clock.now();
    const nanos after = nanotime() + 100;  // a look interrupted for that long may pass for one that was not
    behind += now < before;
    ahead += now > after;
    back += now < earlier;
    earlier = now;
  }
  CHECK(behind == 0);
  CHECK(ahead == 0);
  CHECK(back == 0);
}

TEST_CASE("deadline clock: beside another thread's looks behind by less than the slack") {
  measure();
  constexpr int turns = 300'000;
  std::atomic<nanos> known{0};
  std::thread other([&] {
    for (int i = 0; i < turns; ++i) known.store(nanotime(), std::memory_order_release);
  });
  deadline_clock clock;
  long behind = 0;
  for (int i = 0; i < turns; ++i) {
    const nanos from_other = known.load(std::memory_order_acquire);
    behind += clock.now() + deadline_clock::slack < from_other;
  }
  other.join();
  CHECK(behind == 0);
}

TEST_CASE("deadline clock: goes on by the counter") {
  measure();
  if (cpu_tick_rate.span == 0) return;
  deadline_clock clock;
  int went_on = 0;
  for (int i = 0; i < 1000; ++i) {
    for (int n = 0; n < i % 100; ++n) (void)clock.now();
    const std::uint64_t count = cpu_ticks();
    const nanos first = clock.at(count);
    const nanos quarter = clock.at(count + cpu_tick_rate.span / 4) - first;
    went_on += quarter >= 248 && quarter <= 252;
  }
  CHECK(went_on >= 100);  // in other rounds it was time to look again, or the thread was interrupted
}

TEST_CASE("deadline clock: looks again when the span is over, and when the counter was set back") {
  measure();
  deadline_clock clock;
  const std::uint64_t count = cpu_ticks(), span = cpu_tick_rate.span;
  for (std::uint64_t c : {count, count + span, count + 1000 * span, count, count / 2, std::uint64_t{1}}) {
    wait_for_a_while();  // had the clock gone on from its last look, it would be behind
    const nanos before = nanotime();
    const nanos now = clock.at(c);
    CHECK(now >= before);
    CHECK(now <= nanotime());
  }
}

TEST_CASE("deadline clock: does not trust a look that took long") {
  measure();
  clock_look l = look_at_clock();
  l.took = cpu_tick_rate.look + cpu_tick_rate.per_us / 60;
  CHECK(l.is_sure());
  l.took = cpu_tick_rate.look + cpu_tick_rate.per_us / 10;
  CHECK_FALSE(l.is_sure());
}

TEST_CASE("deadline clock: does not go back when it looks again") {
  measure();
  deadline_clock clock;
  int back = 0;
  for (int i = 0; i < 1000; ++i) {
    (void)clock.now();
    const std::uint64_t count = cpu_ticks();
    // The counter says that half a microsecond has passed, and then that it was set back. In fact, hardly any time has
    // passed.
    const nanos later = clock.at(count + cpu_tick_rate.span / 2);
    back += clock.at(count - 1'000'000) < later;
  }
  CHECK(back == 0);
}

TEST_CASE("deadline clock: where the clock does not follow the counter, it looks each time") {
  measure();
  const tick_rate measured = cpu_tick_rate;
  cpu_tick_rate.span = 0;
  deadline_clock clock;
  const std::uint64_t count = cpu_ticks();
  for (int i = 0; i < 100; ++i) {
    const nanos before = nanotime();
    CHECK(clock.at(count) >= before);
  }
  cpu_tick_rate = measured;
}
