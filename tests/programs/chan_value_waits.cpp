// The move constructor of a channel's value runs under the channel's lock. If it waits, the program ends with a message
// that says so.
#include <chrono>
#include <weft/weft.hpp>

struct sleepy {
  sleepy() = default;
  sleepy(sleepy&&) noexcept { weft::sleep(std::chrono::milliseconds(1)); }
  sleepy& operator=(sleepy&&) = delete;
};

int main() {
  return weft::run([] {
    weft::chan<sleepy> c(1);
    c.send(sleepy());
  });
}
