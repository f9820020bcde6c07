// main has ended itself, the others go on, and one of them ends the process: static destructors run.
#include <cstdio>
#include <cstdlib>
#include <weft/weft.hpp>

struct farewell {
  ~farewell() { std::fputs("farewell\n", stderr); }
} the_farewell;

int main() {
  using namespace std::chrono_literals;
  return weft::run([] {
    weft::go([] {
      weft::sleep(5ms);
      std::exit(4);
    });
    weft::exit_goroutine();
  });
}
