#include <weft/weft.hpp>

int main() {
  return weft::run([] { return weft::procs() >= 1 ? 0 : 1; });
}
