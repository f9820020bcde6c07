#include "tests/support/endless.hpp"

#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::go({.name = "deep"}, [] { endless(0); });
    weft::chan<int>().recv();
  });
}
