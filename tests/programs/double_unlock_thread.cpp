// Misuse on a thread that is no goroutine: the report says which thread, and where.
#include <pthread.h>
#include <thread>
#include <weft/weft.hpp>

namespace {
__attribute__((noinline)) void unlocks_twice(weft::mutex& m) {
  m.lock();
  m.unlock();
  m.unlock();
  asm volatile("");
}
}  // namespace

int main() {
  return weft::run([] {
    weft::mutex m;
    std::thread t([&] {
      ::pthread_setname_np(::pthread_self(), "outsider");
      unlocks_twice(m);
    });
    weft::blocking([&] { t.join(); });
  });
}
