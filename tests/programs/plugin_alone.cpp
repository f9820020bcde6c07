// A program that knows nothing of weft; its plugin brings it along. When the plugin is unloaded, weft stays: what it
// has installed, such as the handler of SIGSEGV, can be called at any time.
#include "plugin/plugin.hpp"

#include <csignal>
#include <unistd.h>

int main(int, char** argv) {
  const char* path = argv[1];
  std::signal(SIGSEGV, [](int) { _exit(12); });
  for (int round = 0; round < 5; ++round) {
    {
      plugin p(path);
      if (p->run_sum(100) != 4950) return 1;
    }
    if (!plugin::is_loaded("libweft.so.0.1")) return 3;
  }
  std::raise(SIGSEGV);
  return 4;
}
