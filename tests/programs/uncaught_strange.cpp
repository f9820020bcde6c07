// A function that a timer started throws something that is not a std::exception.
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
