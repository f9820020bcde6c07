// To the caller, coming back by a jump is the same as a return (runtime/way_back.hpp).

#include "runtime/way_back.hpp"
#include "tests/support/catch.hpp"

#include <array>
#include <cstdint>
#include <stdexcept>

using namespace weft::rt;

namespace {

enum class answer : std::uint8_t { one = 1, other = 200 };

// Where the goroutine that left the thread last would have returned to: to an address below the one to which this
// returns, above it, or to the same.
enum class noted { below, above, here };
constexpr std::array all{noted::below, noted::above, noted::here};

[[gnu::always_inline]] inline const void* address(noted n) {
  if (n == noted::here) return __builtin_return_address(0);
  return n == noted::below ? nullptr : reinterpret_cast<const void*>(UINTPTR_MAX);
}

// Calls come_back last: the compiler makes a jump of it.
[[gnu::noinline]] answer last(noted n, answer a) { return come_back(address(n), a); }

// Does more after come_back: the compiler makes a call of it.
[[gnu::noinline]] int more(noted n, bool b) { return (come_back(address(n), b) ? 10 : 20) + 1; }

[[gnu::noinline]] const int* throw_unless_zero(noted n, const int* p) {
  const int* back = come_back(address(n), p);
  if (*back != 0) throw std::runtime_error("not zero");
  return back;
}

}  // namespace

TEST_CASE("way back: the value comes back, whatever was noted") {
  for (noted n : all) {
    for (answer a : {answer::one, answer::other}) CHECK(last(n, a) == a);
    CHECK(more(n, true) == 11);
    CHECK(more(n, false) == 21);
  }
}

TEST_CASE("way back: what a callee keeps is kept") {
  std::uint64_t a = 1, b = 2, c = 3, d = 4, e = 5;
  for (int i = 0; i < 100; ++i) {
    for (noted n : all) {
      auto one = static_cast<std::uint64_t>(last(n, answer::one));
      a += one, b += 2 * one, c += 3 * one, d += 4 * one, e += 5 * one;
    }
  }
  CHECK(std::array{a, b, c, d, e} == std::array<std::uint64_t, 5>{301, 602, 903, 1204, 1505});
}

TEST_CASE("way back: an exception passes a frame that was jumped back to") {
  const int zero = 0, one = 1;
  for (noted n : all) {
    CHECK(throw_unless_zero(n, &zero) == &zero);
    CHECK_THROWS_AS(throw_unless_zero(n, &one), std::runtime_error);
  }
}
