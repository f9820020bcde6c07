// What was thrown is no std::exception, from a function that a timer started.
#include <weft/weft.hpp>

namespace strange {
struct thing {};
}  // namespace strange

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::after_func(1ms, [] { throw strange::thing{}; });
    weft::chan<int>().recv();
  });
}
