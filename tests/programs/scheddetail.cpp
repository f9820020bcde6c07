#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    for (int i = 0; i < 4; ++i) weft::go([] { weft::sleep(1h); });
    weft::sleep(120ms);
  });
}
