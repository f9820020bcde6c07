// The report of a stack overflow when the address space is used up.
#include "tests/support/endless.hpp"

#include <cstdlib>
#include <sys/resource.h>
#include <weft/weft.hpp>

namespace {

void use_memory_up() {
  const rlimit little{1 << 20, 1 << 20};
  setrlimit(RLIMIT_AS, &little);
  void* volatile p;
  do {
    p = std::malloc(1);
  } while (p);
}

}  // namespace

int main() {
  return weft::run([] {
    weft::go({.name = "deep"}, [] {
      use_memory_up();
      endless(0);
    });
    weft::chan<int>().recv();
  });
}
