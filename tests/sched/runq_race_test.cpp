// The run queue with real threads: ThreadSanitizer sees whether what the owner wrote into a goroutine before it queued
// it happened before what the thief reads. Kills the mutants runq-tail-relaxed and runq-head-relaxed there.

#include "sched/runq.hpp"
#include "tests/support/catch.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <thread>

using namespace weft::rt;

TEST_CASE("run queue: an owner and two thieves on threads of their own") {
  constexpr std::size_t n = 30000;
  using queue = basic_run_queue<16>;
  auto gs = std::make_unique<G[]>(n);
  queue q;
  std::array<queue, 2> stolen;
  std::atomic<bool> done{false};
  std::array<std::uint64_t, 3> sum{}, count{};

  auto take = [&](std::size_t who, G* g) {
    sum[who] += g->id;
    ++count[who];
    g->id = 0;  // ours now
  };
  std::array<std::thread, 2> thieves;
  for (std::size_t t = 0; t < 2; ++t) {
    thieves[t] = std::thread([&, t] {
      bool inherit;
      while (!done.load()) {
        G* g = q.steal_into(stolen[t]);
        if (!g) g = q.steal_next(q.peek_next());
        if (!g) {
          std::this_thread::yield();
          continue;
        }
        take(t, g);
        while ((g = stolen[t].get(&inherit))) take(t, g);
      }
    });
  }
  bool inherit;
  for (std::size_t i = 0; i < n; ++i) {
    G* g = &gs[i];
    g->id = i + 1;
    if (i % 3 == 0) g = q.put_next(g);
    while (g && !q.put(g, queue::barrier::publish)) {
      if (G* mine = q.get(&inherit)) take(2, mine);
    }
  }
  while (G* g = q.get(&inherit)) take(2, g);
  while (!q.empty()) std::this_thread::yield();
  done = true;
  for (auto& t : thieves) t.join();

  CHECK(count[0] + count[1] + count[2] == n);
  CHECK(sum[0] + sum[1] + sum[2] == n * (n + 1) / 2);
}
