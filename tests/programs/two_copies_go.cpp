// The plugin starts a goroutine by its own copy of weft, while the program's runs.
#include "plugin/plugin.hpp"

#include <thread>
#include <weft/weft.hpp>

int main(int, char** argv) {
  return weft::run([&] {
    plugin p(argv[1]);
    std::thread([&] { p->start(); }).join();
    return 0;
  });
}
