// A stray pointer hits the guard page of another goroutine, which must not be blamed for an overflow of its stack.
#include <chrono>
#include <cstdint>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

int main() {
  return weft::run([] {
    weft::chan<volatile char*> c;
    weft::go({.name = "innocent"}, [c] {
      char buffer[64];
      c.send(buffer);
      weft::sleep(1h);
    });
    weft::spawn({.name = "culprit"}, [c] {
      volatile char* p = *c.recv();
      p -= reinterpret_cast<std::uintptr_t>(p) % 4096;
      for (;; p -= 4096) *p = 1;
    }).join();
  });
}
