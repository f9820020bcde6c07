#include "support/unlocks_twice.hpp"
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::mutex m;
    unlocks_twice(m);
  });
}
