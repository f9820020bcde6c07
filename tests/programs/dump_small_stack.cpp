// A dump, with demangled names, made by a goroutine that has next to no stack left.
#include "support/deep.hpp"

#include <cstdio>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::wait_group all;
    all.go({.name = "small", .stack_size = 16384}, [] { at_depth(10, [] { weft::dump_goroutines(stderr); }); });
    all.wait();
  });
}
