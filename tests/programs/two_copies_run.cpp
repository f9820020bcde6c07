// The plugin runs its own copy of weft while the program's runs.
#include "plugin/plugin.hpp"

#include <thread>
#include <weft/weft.hpp>

int main(int, char** argv) {
  return weft::run([&] {
    plugin p(argv[1]);
    std::thread([&] { p->run_sum(1); }).join();
    return 0;
  });
}
