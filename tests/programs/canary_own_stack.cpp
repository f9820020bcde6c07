// A goroutine without a guard page is suspended on a stack of its own making. This must not be taken for an overflow.
#include <cstdio>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>
#include <weft/weft.hpp>

namespace {

ucontext_t outside, inside;

void on_own_stack() {
  for (int i = 0; i < 3; ++i) weft::yield();
  std::fputs("went on\n", stderr);
}

void change_to(void* memory, std::size_t size) {
  getcontext(&inside);
  inside.uc_stack.ss_sp = memory;
  inside.uc_stack.ss_size = size;
  inside.uc_link = &outside;
  makecontext(&inside, on_own_stack, 0);
  swapcontext(&outside, &inside);
}

}  // namespace

int main() {
  return weft::run([] {
    weft::spawn([] {
      constexpr std::size_t size = 64 * 1024;
      std::vector<char> from_the_heap(size);
      change_to(from_the_heap.data(), size);
      // Next to weft's own stacks.
      void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      change_to(mapped, size);
      ::munmap(mapped, size);
    }).join();
  });
}
