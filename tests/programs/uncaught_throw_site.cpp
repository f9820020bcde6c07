// The report of an uncaught exception shows where it was thrown, and std::terminate is called before anything is
// unwound.
#include <cstdio>
#include <stdexcept>
#include <weft/weft.hpp>

namespace {
struct in_between {
  ~in_between() { std::fputs("unwound\n", stderr); }
};

__attribute__((noinline)) void finds_nothing(int n) {
  if (n == 0) throw std::out_of_range("nothing there");
  finds_nothing(n - 1);
  asm volatile("");
}

__attribute__((noinline)) void looks_for_it() {
  in_between object;
  try {
    finds_nothing(2);
  } catch (const std::bad_alloc&) {}
}
}  // namespace

int main() {
  return weft::run([] {
    weft::go({.name = "searcher"}, looks_for_it);
    weft::chan<int>().recv();
  });
}
