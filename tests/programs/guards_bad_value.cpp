#include <weft/weft.hpp>

int main() {
  return weft::run([] {});
}
