// The report of a stack overflow where the address space is used up.
#include <cstdlib>
#include <sys/resource.h>
#include <weft/weft.hpp>

namespace {

__attribute__((noinline)) int endless(int n) {
  volatile char room[256];
  room[0] = static_cast<char>(n);
  if (n < 0) return 0;
  return endless(n + 1) + room[0];
}

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
