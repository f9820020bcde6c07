// Where stacks lie (runtime/stack.hpp), and when they lose their memory (runtime/stack_cooling.hpp).
//
// Kills these mutants (tests/mutants): stacks-cool-at-once, stacks-cool-all, stacks-cool-though-used,
// stacks-cool-counts-twice, stacks-cool-overflow.

#include "runtime/stack.hpp"
#include "runtime/stack_cooling.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <sys/mman.h>
#include <vector>

using namespace weft::rt;

namespace {

std::vector<stack*> take(stack_class* c, std::size_t n) {
  std::vector<stack*> out(n);
  for (std::size_t i = 0; i < n;) i += stack_take(c, out.data() + i, n - i);
  return out;
}

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

TEST_CASE("stack: slots are an odd number of pages apart, and no smaller than asked for") {
  for (std::size_t pages : {4, 5, 16, 63, 64, 65, 256}) {
    CAPTURE(pages);
    stack_class* c = stack_class_for(pages * page);
    CHECK(stack_size_of(c) >= pages * page);
    stack_reserve(c, stack_slots_per_slab(c));
    std::vector<stack*> stacks = take(c, 4);
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      const stack* s = stacks[i];
      // As large as asked for, except for the colour, which is less than a page.
      CHECK(address(s->hi) - address(s->lo) + page > stack_size_of(c));
      if (i == 0) continue;
      std::uintptr_t apart = address(s->lo) - address(stacks[i - 1]->lo);
      CHECK(apart == stack_size_of(c) + page);
      CHECK(apart / page % 2 == 1);
    }
    stack_put(c, stacks.data(), stacks.size());
  }
}

TEST_CASE("stack: no memory for one that is larger than what can be addressed, for any number of Ps") {
  for (std::size_t size : {SIZE_MAX, SIZE_MAX / 4, std::size_t{1} << 60, (std::size_t{1} << 47) + 1}) {
    CHECK_THROWS_AS(stack_class_for(size), std::bad_alloc);
  }
  for (unsigned n : {1u, 3u, 64u, 1024u}) {
    stack_class* c = stack_class_for(std::size_t{1} << 47);
    CHECK_THROWS_AS(stack_reserve(c, n * stack_slots_per_slab(c)), std::bad_alloc);
  }
}

TEST_CASE("stack: a guard is its own stack's, among those of all sizes") {
  std::vector<G> users(9);
  std::vector<stack*> stacks;
  std::vector<stack_class*> classes;
  for (std::size_t pages : {4, 16, 64}) {
    stack_class* c = stack_class_for(pages * page);
    for (stack* s : take(c, 3)) {
      s->user = &users[stacks.size()];
      stacks.push_back(s);
      classes.push_back(c);
    }
  }
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    CAPTURE(i);
    CHECK(stack_guard_owner(stacks[i]->lo - 1) == &users[i]);
    CHECK(stack_guard_owner(stacks[i]->lo - page) == &users[i]);
    CHECK(stack_guard_owner(stacks[i]->lo) == nullptr);
    CHECK(stack_guard_owner(stacks[i]->hi) == nullptr);
  }
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    stacks[i]->user = nullptr;
    stack_put(classes[i], &stacks[i], 1);
  }
}

// Below a slab may lie any other stack, of a signal handler or of a coroutine, whose faults are none of weft's.
TEST_CASE("stack: a fault below the slab is an overflow only if it touched what is near") {
  stack_class* c = stack_class_for(21 * page);
  std::vector<stack*> stacks = take(c, 2);
  std::sort(stacks.begin(), stacks.end(), [](const stack* a, const stack* b) { return a->lo < b->lo; });
  const std::uintptr_t lo = address(stacks[0]->lo), slab = lo - page, far = 1024 * 1024;
  G first, second;
  first.own_stack = stacks[0];
  second.own_stack = stacks[1];
  const auto pointer = [](std::uintptr_t at) { return reinterpret_cast<const void*>(at); };
  CHECK_FALSE(stack_is_left(&first, lo, pointer(lo)));
  CHECK(stack_is_left(&first, lo - 8, nullptr));
  CHECK(stack_is_left(&first, slab, nullptr));
  CHECK(stack_is_left(&second, slab, nullptr));
  for (std::uintptr_t sp : {slab - 8, slab - far / 2}) {
    for (std::uintptr_t near : {sp - far + 1, sp - 8, sp, lo - 8, sp + far - 1}) {
      CHECK(stack_is_left(&first, sp, pointer(near)));
    }
    for (std::uintptr_t other : {std::uintptr_t{0}, std::uintptr_t{16}, sp - far, sp + far}) {
      CHECK_FALSE(stack_is_left(&first, sp, pointer(other)));
    }
  }
  CHECK_FALSE(stack_is_left(&first, slab - far, pointer(slab - far)));
  stack_put(c, stacks.data(), stacks.size());
}

namespace {

std::vector<std::byte*> lowest_of(const std::vector<stack*>& stacks) {
  std::vector<std::byte*> out;
  for (stack* s : stacks) out.push_back(s->lo);
  return out;
}

// Brings every page of these stacks into memory.
void touch(const std::vector<stack*>& stacks) {
  for (stack* s : stacks) {
    for (std::byte* at = s->lo; at < s->hi; at += page) *at = std::byte{1};
  }
}

// True if the stack has lost its memory. Asks the kernel, as the header of a cold stack is gone with its memory.
bool is_cold(const std::byte* lo) {
  unsigned char in_memory = 0;
  REQUIRE(::mincore(const_cast<std::byte*>(lo), page, &in_memory) == 0);
  return (in_memory & 1) == 0;
}

std::size_t cold(const std::vector<std::byte*>& lowest) {
  return static_cast<std::size_t>(std::count_if(lowest.begin(), lowest.end(), is_cold));
}

// Ends the interval, and cools all that may be cooled in the next one.
void pass_interval() {
  stack_begin_interval();
  while (stack_cool_some()) {}
}

}  // namespace

TEST_CASE("stack: half of those that lay free for an interval lose their memory in the next, and no others") {
  stack_release_free_pages();
  stack_class* c = stack_class_for(29 * page);
  constexpr std::size_t n = 1000, used = 200;
  std::vector<stack*> all = take(c, n);
  touch(all);
  const std::vector<std::byte*> lowest = lowest_of(all);

  pass_interval();
  CHECK(cold(lowest) == 0);  // all are used
  stack_put(c, all.data(), n);
  pass_interval();
  CHECK(cold(lowest) == 0);  // they were used for part of the interval
  std::size_t left = n;
  while (left > 0) {
    CAPTURE(left);
    // Some of those that are free are used again.
    const std::size_t again = std::min(left, used);
    std::vector<stack*> some = take(c, again);
    stack_put(c, some.data(), again);
    std::size_t to_cool = std::min(left - again, std::max((left - again) / 2, std::size_t{64}));
    pass_interval();
    CHECK(cold(lowest) == n - left + to_cool);
    left -= to_cool;
    if (to_cool == 0) break;
  }
  CHECK(left == used);
  CHECK(stack_in_use(c) == 0);

  // They can be used as ever.
  all = take(c, n);
  touch(all);
  CHECK(std::set<stack*>(all.begin(), all.end()).size() == n);
  for (stack* s : all) CHECK(s->origin == c);
  stack_put(c, all.data(), n);
  stack_release_free_pages();
  CHECK(!stacks_lie_free());
}

TEST_CASE("stack: those whose memory is locked lose it as well") {
  stack_release_free_pages();
  stack_class* c = stack_class_for(4 * page);
  std::vector<stack*> stacks = take(c, 1);
  touch(stacks);
  std::byte* const lo = stacks[0]->lo;
  REQUIRE(::mlock(lo, 2 * page) == 0);
  stack_put(c, stacks.data(), 1);
  stack_release_free_pages();
  CHECK(is_cold(lo));
  ::munlock(lo, 2 * page);
}

TEST_CASE("stack: who uses stacks in an interval before others are cooled, finds as many in the next") {
  stack_release_free_pages();
  stack_class* c = stack_class_for(27 * page);
  constexpr std::size_t n = 1000, wave = 200;
  std::vector<stack*> all = take(c, n);
  touch(all);
  const std::vector<std::byte*> lowest = lowest_of(all);
  stack_put(c, all.data(), n);
  stack_begin_interval();
  std::vector<std::byte*> used;
  std::size_t left = n;
  for (int i = 0; i < 12; ++i) {
    CAPTURE(i);
    stack_begin_interval();
    std::vector<stack*> some = take(c, wave);
    if (used.empty()) used = lowest_of(some);
    stack_put(c, some.data(), wave);
    while (stack_cool_some()) {}
    CHECK(cold(used) == 0);  // the same stacks are used each time
    const std::size_t now = n - cold(lowest);
    if (i > 0 && left > wave) CHECK(left - now == std::min(left - wave, std::max((left - wave) / 2, std::size_t{64})));
    left = now;
  }
  CHECK(left == wave);

  // All are used at once while some are to be cooled.
  all = take(c, n);
  touch(all);
  stack_put(c, all.data(), n);
  stack_begin_interval();
  stack_begin_interval();
  CHECK(stack_cool_some());
  const std::size_t before = cold(lowest);
  CHECK(before > 0);
  all = take(c, n - before);
  stack_put(c, all.data(), all.size());
  CHECK(!stack_cool_some());
  CHECK(cold(lowest) == before);
  stack_release_free_pages();
}
