// Misuse on a thread that a goroutine started: its name is the one that weft gave the goroutine's own thread, which
// would mislead.
#include <thread>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::mutex m;
    std::thread t([&] { m.unlock(); });
    weft::blocking([&] { t.join(); });
  });
}
