#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::go([] { weft::sleep(std::chrono::hours(1)); });
    return 7;
  });
}
