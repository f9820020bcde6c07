// The report of how much of their stacks goroutines have used, by where they were started.
#include <cstring>
#include <weft/weft.hpp>

namespace {

__attribute__((noinline)) void use(std::size_t bytes) {
  volatile char room[1024];
  std::memset(const_cast<char*>(room), 1, sizeof room);
  if (bytes > sizeof room) use(bytes - sizeof room);
  room[0] = room[1];
}

__attribute__((noinline)) void start_deep_ones() {
  weft::wait_group all;
  for (int i = 0; i < 3; ++i) all.go([] { use(48 * 1024); });
  all.wait();
}

// On stacks of another size.
__attribute__((noinline)) void start_small_ones() {
  weft::wait_group all;
  for (int i = 0; i < 5; ++i) all.go({.stack_size = 64 * 1024}, [] { use(8 * 1024); });
  all.wait();
}

}  // namespace

int main() {
  return weft::run([] {
    start_deep_ones();
    start_small_ones();
  });
}
