// A goroutine of the program's copy of weft waits in a channel of the plugin's own copy.
#include "plugin/plugin.hpp"

#include <weft/weft.hpp>

int main(int, char** argv) {
  return weft::run([&] {
    plugin p(argv[1]);
    return p->waits() ? 1 : 0;
  });
}
