// The exception of a task that had failed before it was detached: by the name of the one that threw.
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    auto t = weft::spawn({.name = "culprit"}, [] { throw 1; });
    t.wait();
    t.detach();
  });
}
