// Two copies of weft that are used one after the other do no harm.
#include "plugin/plugin.hpp"

#include <weft/weft.hpp>

int main(int, char** argv) {
  plugin p(argv[1]);
  for (int round = 0; round < 3; ++round) {
    if (p->run_sum(100) != 4950) return 1;
    if (weft::run([] { return weft::spawn([] { return 3; }).join(); }) != 3) return 2;
  }
  return 12;
}
