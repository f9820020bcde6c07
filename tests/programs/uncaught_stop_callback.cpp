// A stop callback is called by a noexcept function of the standard library. What it throws is reported nevertheless.
#include <stdexcept>
#include <stop_token>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    auto [ctx, cancel] = weft::with_cancel(weft::background());
    std::stop_callback callback(ctx.stop_token(), [] { throw std::runtime_error("no"); });
    weft::go({.name = "canceller"}, [&cancel = cancel] { cancel(); });
    weft::sleep(std::chrono::seconds(10));
  });
}
