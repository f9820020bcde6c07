// An exception meets a `noexcept` after main has returned: it is reported as before.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  using clock = std::chrono::steady_clock;
  const auto c = weft::with_cancel(weft::background());
  std::atomic<bool> begun{false};
  const std::stop_callback callback(c.ctx.stop_token(), [&] {
    begun = true;
    for (auto end = clock::now() + 20ms; clock::now() < end;) {}
    throw std::runtime_error("too late");
  });
  weft::run(
      [&] {
        weft::go({.name = "canceller"}, [&] { c.cancel(); });
        while (!begun) weft::yield();
      },
      {.procs = 2, .shutdown_grace = 10s});
}
