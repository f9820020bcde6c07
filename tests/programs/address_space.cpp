// Where address space is limited, a run() that finds too little of it leaves what there is to the next one; and
// goroutines are started as long as there is some.
#include <cstdio>
#include <new>
#include <sys/resource.h>
#include <weft/weft.hpp>

namespace {

// Starts goroutines that wait until there is no room for another one. Returns how many.
std::size_t fill() {
  const weft::chan<void> over;
  std::size_t started = 0;
  try {
    for (;; ++started) weft::go([=] { over.recv(); });
  } catch (const std::bad_alloc&) {}
  over.close();
  return started;
}

}  // namespace

int main() {
  const rlim_t limit = rlim_t{1500} << 20;
  const rlimit little{limit, limit};
  ::setrlimit(RLIMIT_AS, &little);
  try {
    weft::run([] {}, {.procs = 32, .stack_size = std::size_t{64} << 20});
  } catch (const std::bad_alloc&) {
    std::fputs("no room for large stacks\n", stderr);
  }
  weft::run(
      [=] {
        const std::size_t stacks = fill() * (std::size_t{256} << 10);
        std::fprintf(stderr, "%s (%zu of %zu bytes)\n", stacks > limit * 3 / 4 ? "full" : "room is left", stacks,
                     static_cast<std::size_t>(limit));
      },
      {.procs = 1});
}
