// A function that misuses a mutex. The report must name it.
#pragma once

#include <weft/sync.hpp>

namespace {

__attribute__((noinline)) void unlocks_twice(weft::mutex& m) {
  m.lock();
  m.unlock();
  m.unlock();
  asm volatile("");
}

}  // namespace
