// Contexts under ThreadSanitizer, with real threads: a thread that sees a context cancelled also sees what was done
// before the cancel, and the thread that drops the last handle may destroy the context. Kills the mutants
// context-*-relaxed.

#include "tests/support/hand_over.hpp"

#include <weft/context.hpp>

#include <memory>
#include <optional>
#include <system_error>

using weft::test::hand_over;
using weft::test::must;
using weft::test::several;
using weft::test::times;

namespace {

struct key {
  using value_type = std::shared_ptr<int>;
};

struct cancellable {
  weft::cancellable is = weft::with_cancel({});
};

}  // namespace

TEST_CASE("context: who sees it cancelled sees what was done before the cancel") {
  several<cancellable> c;
  hand_over([&](int i) { c[i].is.cancel(); }, [&](int i) { must(c[i].is.ctx.err() == std::errc::operation_canceled); });
}

TEST_CASE("context: who drops the last handle destroys what the others used") {
  several<std::optional<weft::context>> mine, yours;
  for (int i = 0; i <= times; ++i) yours[i] = mine[i] = weft::with_value<key>({}, std::make_shared<int>(i));
  hand_over(
      [&](int i) {
        must(**mine[i]->value<key>() == i);
        mine[i].reset();
      },
      [&](int i) { yours[i].reset(); });
}
