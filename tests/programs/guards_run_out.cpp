// More stacks than may have a guard page of their own: the others have canaries. weft says so once, and all goes on.
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    constexpr int n = 20'000;
    weft::chan<void> gate;
    weft::wait_group all;
    for (int i = 0; i < n; ++i) all.go([&] { gate.recv(); });
    weft::yield();
    gate.close();
    all.wait();
  });
}
