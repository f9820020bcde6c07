// With WEFT_DEBUG=hazard=1, goroutines change their threads at each suspension, and system mutexes that are held across
// a suspension are reported, once for each place.
#include <cstdio>
#include <mutex>
#include <pthread.h>
#include <unistd.h>
#include <weft/weft.hpp>

namespace {

using namespace std::chrono_literals;

std::mutex a_mutex;

[[gnu::noinline]] void sleeps_with_a_mutex() {
  std::lock_guard hold(a_mutex);
  weft::sleep(1us);
}

[[gnu::noinline]] void yields_with_a_recursive_mutex() {
  std::recursive_mutex m;
  std::lock_guard outer(m), inner(m);
  weft::yield();
}

[[gnu::noinline]] void blocks_with_a_mutex() {
  std::unique_lock hold(a_mutex, std::try_to_lock);
  weft::blocking([] {});
}

[[gnu::noinline]] void is_careful() {
  for (int i = 0; i < 10; ++i) {
    { std::lock_guard hold(a_mutex); }
    weft::yield();
  }
}

// Returns how many of n suspensions ended on the thread on which they began.
template <class F>
int stayed(int n, F suspend) {
  int same = 0;
  for (int i = 0; i < n; ++i) {
    pid_t before = ::gettid();
    suspend();
    same += ::gettid() == before;
  }
  return same;
}

}  // namespace

int main() {
  return weft::run([] {
    weft::spawn({.name = "sleeper"}, [] {
      volatile int times = 3;  // otherwise the loop is unrolled, and there are three places
      for (int i = 0, n = times; i < n; ++i) sleeps_with_a_mutex();
    }).join();
    weft::spawn({.name = "yielder"}, yields_with_a_recursive_mutex).join();
    weft::spawn({.name = "blocker"}, blocks_with_a_mutex).join();
    weft::spawn({.name = "careful"}, is_careful).join();

    int same = stayed(20, [] { weft::yield(); }) + stayed(20, [] { weft::sleep(10us); }) +
               stayed(20, [] { weft::blocking([] {}); });
    std::fprintf(stderr, "on the same thread: %d of 60\n", same);
    weft::lock_os_thread();
    std::fprintf(stderr, "locked to one: %d of 20\n", stayed(20, [] { weft::yield(); }));
    weft::unlock_os_thread();
  });
}
