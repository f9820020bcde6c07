// The report of a stack overflow must not need the heap: the goroutine may have been in malloc.
#include "tests/support/endless.hpp"

#include <cerrno>
#include <cstdlib>
#include <unistd.h>
#include <weft/weft.hpp>

namespace {
thread_local volatile bool overflowing = false;

void heap_is_used() {
  if (!overflowing) return;
  constexpr char text[] = "the heap was used\n";
  (void)!::write(2, text, sizeof text - 1);
  _exit(3);
}
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t n);
void* __libc_calloc(std::size_t n, std::size_t size);
void* __libc_realloc(void* p, std::size_t n);
void* __libc_memalign(std::size_t align, std::size_t n);
void __libc_free(void* p);

void* malloc(std::size_t n) {
  heap_is_used();
  return __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t size) {
  heap_is_used();
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t n) {
  heap_is_used();
  return __libc_realloc(p, n);
}
void* memalign(std::size_t align, std::size_t n) {
  heap_is_used();
  return __libc_memalign(align, n);
}
void* aligned_alloc(std::size_t align, std::size_t n) {
  heap_is_used();
  return __libc_memalign(align, n);
}
int posix_memalign(void** p, std::size_t align, std::size_t n) {
  heap_is_used();
  *p = __libc_memalign(align, n);
  return *p ? 0 : ENOMEM;
}
void free(void* p) {
  heap_is_used();
  __libc_free(p);
}
}

namespace {
__attribute__((noinline)) void begins_the_endless() {
  overflowing = true;
  endless(0);
  asm volatile("");
}
}  // namespace

int main() {
  return weft::run([] {
    weft::go({.name = "deep"}, [] { begins_the_endless(); });
    weft::chan<int>().recv();
  });
}
