#include "netpoll/punctual.hpp"

#include "runtime/random.hpp"
#include "tests/support/catch.hpp"

using namespace weft::rt;

namespace {

wake_lateness after(int sleeps, nanos least, nanos spread) {
  wake_lateness l;
  random_source r(7);
  for (int i = 0; i < sleeps; ++i) l.observe(least + r.below(static_cast<std::uint32_t>(spread)));
  return l;
}

constexpr nanos far = second;

}  // namespace

TEST_CASE("the allowance rests at the upper quartile of what was observed") {
  nanos a = after(400, 40 * microsecond, 20 * microsecond).allowance(far);
  CHECK(a > 50 * microsecond);
  CHECK(a < 60 * microsecond);
}

TEST_CASE("it gets there within thirty sleeps") {
  CHECK(after(30, 80 * microsecond, 4 * microsecond).allowance(far) > 70 * microsecond);
}

TEST_CASE("single sleeps that others held up do not carry it away") {
  wake_lateness l = after(400, 20 * microsecond, 4 * microsecond);
  l.observe(5 * millisecond);
  CHECK(l.allowance(far) < 32 * microsecond);
}

TEST_CASE("nothing is watched for longer than was slept, or than the bound") {
  CHECK(after(1000, millisecond, microsecond).allowance(far) == wake_lateness::longest);
  CHECK(after(1000, millisecond, microsecond).allowance(50 * microsecond) == 25 * microsecond);
  CHECK(after(1000, 0, 1).allowance(far) < microsecond);
}
