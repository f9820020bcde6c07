// at_depth(n, f): calls f() with n KiB of the stack in use.
#pragma once

#include <cstring>

template <class F>
[[gnu::noinline]] void at_depth(int n, F f) {
  char used[1000];
  std::memset(used, 0, sizeof used);
  n > 0 ? at_depth(n - 1, f) : f();
  asm volatile("" : : "r"(used) : "memory");  // no tail call
}
