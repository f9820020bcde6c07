// Misuse on a thread that is not a goroutine: the report says which thread it is, and where.
#include "support/unlocks_twice.hpp"
#include <pthread.h>
#include <thread>
#include <weft/weft.hpp>

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
