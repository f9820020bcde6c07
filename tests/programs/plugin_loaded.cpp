// A plugin that shares the program's copy of weft: loaded, used and unloaded by goroutines, again and again.
#include "plugin/plugin.hpp"

#include <weft/weft.hpp>

int main(int, char** argv) {
  const char* path = argv[1];
  int code = weft::run([&] {
    for (int round = 0; round < 20; ++round) {
      {
        plugin p(path);
        if (p->sum(100) != 4950 || p->waits()) return 1;
        // join() and wait() return a moment before the goroutine has left its last frame.
        while (weft::num_goroutines() > 1) weft::yield();
      }
      if (plugin::is_loaded(path)) return 2;
      weft::sleep(std::chrono::microseconds(300));  // none of the plugin's code runs any more
    }
    return 12;
  });
  plugin p(path);
  return p->run_sum(10) == 45 ? code : 3;
}
