// The exception of a task that had failed before it was detached is reported with the name of the goroutine that threw.
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    auto t = weft::spawn({.name = "culprit"}, [] { throw 1; });
    t.wait();
    t.detach();
  });
}
