// A recursion that overflows any stack.
#pragma once

namespace {

__attribute__((noinline)) int endless(int n) {
  volatile char room[256];
  room[0] = static_cast<char>(n);
  if (n < 0) return 0;
  return endless(n + 1) + room[0];
}

}  // namespace
