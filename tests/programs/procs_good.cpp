#include <weft/weft.hpp>

int main() {
  if (weft::run([] { return static_cast<int>(weft::procs()); }) != 6) return 1;
  return weft::run([] { return static_cast<int>(weft::procs()); }, {.procs = 2}) == 2 ? 0 : 2;
}
