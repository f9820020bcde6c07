// Without a guard page: an overflow that has come back in time is noticed when the goroutine yields.
#include <cstdint>
#include <cstring>
#include <weft/weft.hpp>

namespace {

// A bit more than a stack, but less than a page more.
constexpr std::uintptr_t deep_enough = 256 * 1024 + 256;

__attribute__((noinline)) int down(std::uintptr_t from) {
  volatile char room[128];
  std::memset(const_cast<char*>(room), 1, sizeof room);
  if (from - reinterpret_cast<std::uintptr_t>(&room) > deep_enough) return 0;
  return down(from) + room[0];
}

}  // namespace

int main() {
  return weft::run([] {
    weft::go({.name = "deep"}, [] {
      char here;
      down(reinterpret_cast<std::uintptr_t>(&here));
      weft::yield();
    });
    weft::chan<int>().recv();
  });
}
