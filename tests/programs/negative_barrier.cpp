#include <weft/weft.hpp>

int main() {
  return weft::run([] { weft::barrier b(-1); });
}
