// Kills these mutants (tests/mutants): sleep-crowd-late, sleep-crowd-early, sleep-crowd-of-few,
// sleep-crowd-is-forgotten-late, sleep-crowd-past-the-end.
#include "timers/sleep_crowd.hpp"

#include "tests/support/catch.hpp"

#include <algorithm>
#include <initializer_list>

using namespace weft::rt;

namespace {

constexpr nanos start = 1'234'567'891'234'567;

// go_on() begins a sleep of `length` every `apart`, for `for_time`. late() is how long after its due time a sleep ends
// that begins at `at`.
struct sleepers {
  sleep_crowd crowd;
  nanos at = start;

  void go_on(nanos apart, nanos length, nanos for_time) {
    for (nanos until = at + for_time; at < until; at += apart) crowd.end_of(length, at + length);
  }
  nanos late(nanos length) { return crowd.end_of(length, at + length).at - at - length; }
  bool with_others(nanos length) { return crowd.end_of(length, at + length).with_others; }
};

sleepers crowd_of(nanos apart, nanos length) {
  sleepers s;
  s.go_on(apart, length, 100 * millisecond);
  return s;
}

}  // namespace

TEST_CASE("few that sleep end on time, each") {
  for (nanos length : {50 * microsecond, millisecond, 5 * millisecond, second, 100 * second}) {
    sleepers s = crowd_of(length / 2, length);  // too few for a crowd
    CHECK(s.late(length) == 0);
    CHECK_FALSE(s.with_others(length));
  }
}

TEST_CASE("many end together, on a grid that all have in common") {
  for (nanos length : {millisecond, 5 * millisecond, 20 * millisecond, 300 * millisecond, 2 * second}) {
    sleepers s = crowd_of(microsecond, length);
    const nanos step = sleep_crowd::grid(length);
    nanos latest = 0;
    for (int i = 0; i < 1000; ++i, s.at += step / 16) {
      sleep_end end = s.crowd.end_of(length, s.at + length);
      REQUIRE(end.with_others);
      REQUIRE(end.at % step == 0);
      REQUIRE(end.at >= s.at + length);
      latest = std::max(latest, end.at - s.at - length);
    }
    CHECK(latest < step);
    CHECK(latest >= step * 15 / 16 - 1);
  }
}

TEST_CASE("how late: an eighth and half a millisecond at most, or 1/128 and 1 ms") {
  CHECK(sleep_crowd::grid(50 * microsecond) <= 50 * microsecond / 8);
  CHECK(sleep_crowd::grid(millisecond) <= millisecond / 8);
  CHECK(sleep_crowd::grid(millisecond) > millisecond / 16);
  CHECK(sleep_crowd::grid(5 * millisecond) == 1 << 19);
  CHECK(sleep_crowd::grid(60 * millisecond) == 1 << 19);
  CHECK(sleep_crowd::grid(200 * millisecond) == 1 << 20);
  CHECK(sleep_crowd::grid(second) == 1 << 20);
  CHECK(sleep_crowd::grid(3600 * second) == 1 << 20);
  CHECK(sleep_crowd::grid(1) <= 1);
}

TEST_CASE("where one comes to each point of the grid, they meet there") {
  constexpr nanos length = 5 * millisecond;
  const nanos step = sleep_crowd::grid(length);
  CHECK(crowd_of(step * 3 / 4, length).with_others(length));
  CHECK_FALSE(crowd_of(step * 3 / 2, length).with_others(length));
}

TEST_CASE("a crowd that has gone is forgotten, and one that comes is soon known") {
  constexpr nanos length = 5 * millisecond;
  sleepers s;
  s.go_on(10 * microsecond, length, 20 * millisecond);
  CHECK(s.with_others(length));
  s.at += second;
  CHECK_FALSE(s.with_others(length));
  CHECK(s.late(length) == 0);
}

TEST_CASE("a sleep that nearly never ends keeps its end") {
  sleepers s = crowd_of(microsecond, second);
  CHECK(s.crowd.end_of(forever - s.at, forever).at == forever);
  CHECK(s.crowd.end_of(forever - s.at - 1, forever - 1).at == forever - 1);
  CHECK(s.with_others(second));
}
