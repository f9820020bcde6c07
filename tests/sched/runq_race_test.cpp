// The run queue under ThreadSanitizer, with real threads. It checks that what one thread did happened before what
// another one does that learns of it by the queue alone. The slots are relaxed atomics, so plain data stands for them:
// what a thief writes before it takes comes, like its look at the slots, before the owner's next use of them.
//
// Kills the mutants runq-*-relaxed.

#include "sched/runq.hpp"
#include "tests/support/catch.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <thread>

using namespace weft::rt;

namespace {

using queue = basic_run_queue<16>;

void put(queue& q, G* g) { (void)q.put(g, queue::barrier::no); }

template <class Condition>
void wait_until(Condition c) {
  while (!c()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("run queue: a thief sees what the owner wrote into a goroutine") {
  for (queue::barrier b : {queue::barrier::no, queue::barrier::publish}) {
    queue q, mine;
    G g;
    std::thread owner([&] {
      g.id = 1;
      (void)q.put(&g, b);
    });
    wait_until([&] { return q.steal_into(mine) != nullptr; });
    CHECK(g.id == 1);
    owner.join();
  }
}

TEST_CASE("run queue: a thief sees what the owner wrote into the one that runs next") {
  queue q;
  G g;
  std::thread owner([&] {
    g.id = 1;
    (void)q.put_next(&g);
  });
  wait_until([&] { return q.steal_next(q.peek_next()) != nullptr; });
  CHECK(g.id == 1);
  owner.join();
}

TEST_CASE("run queue: who robs a thief sees what was written into a goroutine") {
  queue q, stolen, mine;
  std::array<G, 3> gs;
  std::thread thief([&] {
    for (G& g : gs) {
      g.id = 1;
      (void)q.put(&g, queue::barrier::no);
    }
    (void)q.steal_into(stolen);  // takes two: one remains in `stolen`
  });
  G* g = nullptr;
  wait_until([&] { return (g = stolen.steal_into(mine)) != nullptr; });
  CHECK(g->id == 1);
  thief.join();
}

TEST_CASE("run queue: the owner uses a slot again only after the thief's look at it") {
  queue q, stolen;
  std::array<G, 17> gs;
  bool looked = false;
  for (int i = 0; i < 16; ++i) put(q, &gs[i]);
  std::thread thief([&] {
    looked = true;
    (void)q.steal_into(stolen);
  });
  wait_until([&] { return q.put(&gs[16], queue::barrier::no); });
  CHECK(looked);
  thief.join();
}

// steal_into() writes into the slots of an empty queue without a look at that queue's head.
TEST_CASE("run queue: the owner finds it empty only after the thief's look") {
  queue q, stolen;
  G g;
  bool looked = false;
  put(q, &g);
  std::thread thief([&] {
    looked = true;
    (void)q.steal_into(stolen);
  });
  wait_until([&] { return q.size() == 0; });
  CHECK(q.get_from_ring() == nullptr);
  CHECK(looked);
  thief.join();
}

TEST_CASE("run queue: so does an owner whom the thief forestalls") {
  constexpr int times = 50000;
  queue q, stolen;
  G g;
  int looked = 0, wrong = 0;
  std::atomic<int> round{0}, done{0};
  std::thread thief([&] {
    for (int i = 1; i <= times; ++i) {
      wait_until([&] { return round.load() == i; });
      looked = i;
      (void)q.steal_into(stolen);
      done.store(i);
    }
  });
  for (int i = 1; i <= times; ++i) {
    put(q, &g);
    round.store(i);
    for (int n = i % 32; n > 0; --n) cpu_relax();
    if (!q.get_from_ring()) wrong += looked != i;
    wait_until([&] { return done.load() == i; });
  }
  thief.join();
  CHECK(wrong == 0);
}

TEST_CASE("run queue: a thief who finds that the owner took some sees what it did before") {
  for (bool half : {false, true}) {
    queue q, mine;
    std::array<G, 16> gs;
    bool took = false;
    for (G& g : gs) put(q, &g);
    std::thread owner([&] {
      queue::half out;
      took = true;
      if (half) {
        (void)q.take_half(out);
      } else {
        (void)q.get_from_ring();
      }
    });
    wait_until([&] { return q.size() < 16; });
    CHECK(q.steal_into(mine) != nullptr);
    CHECK(took);
    owner.join();
  }
}

TEST_CASE("run queue: an owner and two thieves on threads of their own") {
  constexpr std::size_t n = 30000;
  auto gs = std::make_unique<G[]>(n);
  queue q;
  std::array<queue, 2> stolen;
  std::atomic<bool> done{false};
  std::array<std::uint64_t, 3> sum{}, count{};

  auto take = [&](std::size_t who, G* g) {
    sum[who] += g->id;
    ++count[who];
    g->id = 0;  // the goroutine is ours now
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
