// Misuse before any run(): the report has the trace, too.
#include "support/unlocks_twice.hpp"
#include <weft/weft.hpp>

int main() {
  weft::mutex m;
  unlocks_twice(m);
}
