// Misuse on a thread that a goroutine started. It has inherited the name that weft gave to the goroutine's own thread,
// which would mislead: the report must not show it.
#include <thread>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::mutex m;
    std::thread t([&] { m.unlock(); });
    weft::blocking([&] { t.join(); });
  });
}
