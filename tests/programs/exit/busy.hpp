// What exit() finds: global weft objects of every kind, goroutines that wait in them, and goroutines at work with
// copies of the handles. The exit code is 4, and "farewell" is the last thing written.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <shared_mutex>
#include <unistd.h>
#include <vector>
#include <weft/weft.hpp>

namespace busy {

using namespace std::chrono_literals;

struct farewell {
  ~farewell() { std::fputs("farewell\n", stderr); }
};
inline farewell the_farewell;  // destroyed last

// Destroyed after all objects that follow. For that long the goroutines go on without those objects.
struct pause {
  ~pause() { ::usleep(20'000); }
};
inline pause the_pause;

inline weft::chan<int> jobs, nobody_sends;
inline weft::chan<std::vector<int>> buffered{8};
inline weft::mutex mutex, held;
inline weft::shared_mutex shared;
inline weft::condition_variable changed;
inline weft::event never;
inline weft::semaphore none{0};
inline weft::wait_group group;
inline weft::latch latch{1};
inline weft::barrier barrier{1000};
inline weft::once_flag once;
inline weft::cancellable background_work = weft::with_cancel(weft::background());
inline weft::local<std::vector<int>> own;

inline void pulse() { weft::after_func(100us, pulse); }

// Starts goroutines that wait in globals, which they access by name. They never go on.
inline void start_waiters() {
  using weft::go;
  static weft::timer far{1h};
  go([] { nobody_sends.recv(); });
  go([] {
    std::scoped_lock lock(held);
    weft::sleep(1h);
  });
  go([] {
    while (held.try_lock()) held.unlock(), weft::yield();
    std::scoped_lock lock(held);
  });
  go([] { never.wait(); });
  go([] { none.acquire(); });
  go([] { latch.wait(); });
  go([] { barrier.arrive_and_wait(); });
  go([] {
    std::unique_lock lock(mutex);
    changed.wait(lock);
  });
  go([] { weft::select(weft::on_recv(far.channel()), weft::on_recv(nobody_sends)); });
  while (weft::runtime_stats().waiting < 9) weft::yield();
}

// Starts goroutines that go on while the globals are destroyed. They use only what they have a handle of, or what has a
// destructor that does nothing.
inline void start_workers() {
  using weft::go;
  static weft::ticker near{100us};
  static weft::func_timer much_later = weft::after_func(1h, [] {});
  static weft::task<void> task = weft::spawn([] { weft::sleep(50us); });
  pulse();
  go([ctx = background_work.ctx] { ctx.done().recv(); });
  go([ticks = near.channel()] {
    for (auto t : ticks) (void)t;
  });
  for (int i = 0; i < 4; ++i) {
    go([jobs = jobs] {
      for (int n = 0;; ++n) jobs.send(n);
    });
    go([jobs = jobs] {
      for (int n : jobs) (void)n;
    });
    go([buffered = buffered] {
      for (;;) buffered.send(std::vector<int>(10));
    });
    go([buffered = buffered] {
      for (auto& v : buffered) own->swap(v);
    });
    go([] {
      for (;;) {
        std::shared_lock lock(shared);
        weft::sleep(10us);
      }
    });
    go([] {
      for (;;) group.go([] { weft::sleep(1us); }), group.wait();
    });
    go([] {
      for (;;) weft::spawn([] { return 1; }).join();
    });
    go([] {
      std::atomic<int> n = 0;
      for (;;) ++n;
    });
  }
}

inline void start() {
  start_waiters();
  start_workers();
  weft::sleep(5ms);
}

}  // namespace busy
