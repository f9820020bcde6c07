// Where stacks lie (runtime/stack.hpp).

#include "runtime/stack.hpp"
#include "tests/support/catch.hpp"

#include <cstdint>
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
      // All but the colour, less than a page.
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
