// Go's TestGoexitDeadlock: main has ended itself, and then all others have ended.
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::go([] { weft::sleep(5ms); });
    weft::exit_goroutine();
  });
}
