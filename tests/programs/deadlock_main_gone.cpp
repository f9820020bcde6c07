// Go's TestGoexitDeadlock: main ended itself, and then so did the others.
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::go([] { weft::sleep(5ms); });
    weft::exit_goroutine();
  });
}
