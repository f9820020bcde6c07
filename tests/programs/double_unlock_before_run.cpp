// Misuse before any run(): the report has a trace even then.
#include "support/unlocks_twice.hpp"
#include <weft/weft.hpp>

int main() {
  weft::mutex m;
  unlocks_twice(m);
}
