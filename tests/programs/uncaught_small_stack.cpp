// An uncaught exception in a goroutine that has next to no stack left: the exception is reported, not an overflow.
#include "support/deep.hpp"

#include <stdexcept>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::wait_group all;
    all.go({.stack_size = 16384}, [] {
      at_depth(6, [] {
        if (weft::num_goroutines() != 0) throw std::runtime_error("small");
      });
    });
    all.wait();
  });
}
