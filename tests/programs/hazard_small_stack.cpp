// The report of WEFT_DEBUG=hazard=1, made by a goroutine that has next to no stack left.
#include "support/deep.hpp"

#include <mutex>
#include <weft/weft.hpp>

std::mutex held;

int main() {
  return weft::run([] {
    weft::wait_group all;
    all.go({.stack_size = 16384}, [] {
      at_depth(10, [] {
        held.lock();
        weft::yield();
        held.unlock();
      });
    });
    all.wait();
  });
}
