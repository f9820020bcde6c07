// The run queue with a ring of four, driven through interleavings of its owner and its thieves.
//
// Kills these mutants (tests/mutants): runq-get-without-cas, runq-next-without-cas, runq-half-without-cas,
// runq-put-over-full, runq-steal-next-any, runq-empty-once.

#include "sched/runq.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/interleave.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

using namespace weft::rt;
using weft::test::interleaving;
using weft::test::seeds;

namespace {

using queue = basic_run_queue<4>;
constexpr auto publish = queue::barrier::publish;

// Goroutines, and how often each was taken.
struct crew {
  explicit crew(std::size_t n) : gs(std::make_unique<G[]>(n)), taken(n, 0) {
    for (std::size_t i = 0; i < n; ++i) gs[i].id = i;
  }
  G* at(std::size_t i) { return &gs[i]; }
  void take(const G* g) {
    if (++taken[g->id] > 1) interleaving::fail("goroutine " + std::to_string(g->id) + " was taken twice");
  }
  std::string missing() const {
    auto lost = std::find(taken.begin(), taken.end(), 0);
    return lost == taken.end() ? "" : "goroutine " + std::to_string(lost - taken.begin()) + " is lost";
  }

  std::unique_ptr<G[]> gs;
  std::vector<int> taken;
};

// Does what sched/runqueues.cpp does with a full ring. `overflow` stands for the global queue; only the owner uses it
// here.
void put_or_spill(queue& q, G* g, g_list& overflow) {
  while (!q.put(g, publish)) {
    queue::half batch;
    if (!q.take_half(batch)) continue;
    for (G* older : batch) overflow.push_back(older);
    overflow.push_back(g);
    return;
  }
}

void put_next(queue& q, G* g, g_list& overflow) {
  if (G* before = q.put_next(g)) put_or_spill(q, before, overflow);
}

std::string owner_and_thieves(std::uint64_t seed, std::size_t thieves) {
  constexpr std::size_t n = 24;
  interleaving threads(seed);
  crew all(n);
  queue q;
  std::array<queue, 3> stolen;
  g_list overflow;
  bool owner_done = false;

  threads.add([&] {
    auto& random = threads.random();
    std::size_t next = 0;
    bool inherit;
    while (next < n || !q.empty()) {
      switch (random.below(next < n ? 4 : 1)) {
        case 0:
          if (G* g = q.get(&inherit)) all.take(g);
          break;
        case 1: put_next(q, all.at(next++), overflow); break;
        default: put_or_spill(q, all.at(next++), overflow);
      }
    }
    while (G* g = overflow.pop_front()) all.take(g);
    owner_done = true;
  });
  for (std::size_t t = 0; t < thieves; ++t) {
    threads.add([&, t] {
      queue& mine = stolen[t];
      bool inherit;
      while (!owner_done) {
        G* g = threads.random().below(4) == 0 ? q.steal_next(q.peek_next()) : q.steal_into(mine);
        if (!g) continue;
        all.take(g);
        while ((g = mine.get(&inherit))) all.take(g);
      }
    });
  }
  std::string wrong = threads.run();
  return wrong.empty() ? all.missing() : wrong;
}

}  // namespace

TEST_CASE("run queue: an owner and one thief lose and duplicate nothing") {
  for (std::uint64_t seed = 0; seed < seeds(10000); ++seed) {
    std::string wrong = owner_and_thieves(seed, 1);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}

TEST_CASE("run queue: an owner and three thieves lose and duplicate nothing") {
  for (std::uint64_t seed = 0; seed < seeds(10000); ++seed) {
    std::string wrong = owner_and_thieves(seed, 3);
    INFO("seed " << seed);
    REQUIRE(wrong == "");
  }
}

TEST_CASE("run queue: thieves that steal from each other lose and duplicate nothing") {
  for (std::uint64_t seed = 0; seed < seeds(10000); ++seed) {
    constexpr std::size_t n = 12;
    interleaving threads(seed);
    crew all(n);
    std::array<queue, 3> qs;
    std::size_t made = 0, done = 0;
    for (std::size_t i = 0; i < qs.size(); ++i) {
      threads.add([&, i] {
        bool inherit;
        g_list overflow;
        while (done < n) {
          if (made < n && threads.random().below(2) == 0) {
            put_next(qs[i], all.at(made++), overflow);
            continue;
          }
          G* g = qs[i].get(&inherit);
          if (!g) g = overflow.pop_front();
          if (!g) g = qs[(i + 1 + threads.random().below(2)) % qs.size()].steal_into(qs[i]);
          if (!g) {
            queue& victim = qs[(i + 1) % qs.size()];
            g = victim.steal_next(victim.peek_next());
          }
          if (!g) continue;
          all.take(g);
          ++done;
        }
      });
    }
    INFO("seed " << seed);
    REQUIRE(threads.run() == "");
    REQUIRE(all.missing() == "");
  }
}

// Goroutines move from runnext to the ring, but there is always one. A thread that asks must not be told otherwise,
// since the wake-up protocol (sched/proc.cpp) goes to sleep on that answer.
TEST_CASE("run queue: empty() is never true while something is queued") {
  for (std::uint64_t seed = 0; seed < seeds(10000); ++seed) {
    interleaving threads(seed);
    crew all(2);
    queue q;
    (void)q.put_next(all.at(0));
    bool done = false;
    threads.add([&] {
      bool inherit;
      G* spare = all.at(1);
      for (int i = 0; i < 12; ++i) {
        // At first there is one goroutine, in runnext or in the ring; then there are two; then one again.
        if (threads.random().below(3) == 0) {
          interleaving::check(q.put(spare, publish), "a ring of four is full with two");
        } else if (G* before = q.put_next(spare)) {
          interleaving::check(q.put(before, publish), "a ring of four is full with two");
        }
        spare = q.get(&inherit);
        interleaving::check(spare != nullptr, "get() finds nothing among two");
      }
      done = true;
    });
    threads.add([&] {
      while (!done) {
        interleaving::check(!q.empty() || done, "empty() although there is a goroutine");
      }
    });
    INFO("seed " << seed);
    REQUIRE(threads.run() == "");
  }
}

TEST_CASE("run queue: runnext first, then the ring in its order") {
  const bool alone = GENERATE(false, true);
  crew all(8);
  queue q;
  q.set_unshared(alone);
  bool inherit = true;
  CHECK(q.empty());
  CHECK(q.get(&inherit) == nullptr);
  CHECK_FALSE(inherit);
  CHECK(q.room() == 4);

  REQUIRE(q.put(all.at(0), publish));
  REQUIRE(q.put(all.at(1), publish));
  CHECK(q.put_next(all.at(2)) == nullptr);
  CHECK(q.put_next(all.at(3)) == all.at(2));
  REQUIRE(q.put(all.at(2), publish));
  CHECK(q.size() == 4);
  CHECK(q.room() == 1);
  CHECK(q.peek_next() == all.at(3));

  CHECK(q.get(&inherit) == all.at(3));
  CHECK(inherit);
  for (std::size_t i : {0, 1, 2}) {
    CHECK(q.get(&inherit) == all.at(i));
    CHECK_FALSE(inherit);
  }
  CHECK(q.empty());
}

TEST_CASE("run queue: a full ring gives half of itself away, the oldest first") {
  const bool alone = GENERATE(false, true);
  crew all(6);
  queue q;
  q.set_unshared(alone);
  queue::half out;
  CHECK_FALSE(q.take_half(out));
  for (std::size_t i = 0; i < 4; ++i) REQUIRE(q.put(all.at(i), publish));
  CHECK_FALSE(q.put(all.at(4), publish));
  REQUIRE(q.take_half(out));
  REQUIRE(out.size() == 2);
  CHECK(out[0] == all.at(0));
  CHECK(out[1] == all.at(1));
  CHECK(q.put(all.at(4), publish));
  bool inherit;
  CHECK(q.get(&inherit) == all.at(2));
}

TEST_CASE("run queue: a thief takes the older half and runs the last of it") {
  crew all(4);
  queue q, mine;
  bool inherit;
  for (std::size_t i = 0; i < 4; ++i) REQUIRE(q.put(all.at(i), publish));
  CHECK(q.steal_into(mine) == all.at(1));
  CHECK(mine.get(&inherit) == all.at(0));
  CHECK(mine.empty());
  CHECK(q.size() == 2);
  CHECK(q.steal_into(mine) == all.at(2));
  CHECK(mine.empty());
  CHECK(q.steal_into(mine) == all.at(3));
  CHECK(q.steal_into(mine) == nullptr);

  CHECK(q.put_next(all.at(0)) == nullptr);
  CHECK(q.steal_into(mine) == nullptr);  // runnext is the last resort
  CHECK(q.steal_next(all.at(1)) == nullptr);
  CHECK(q.steal_next(nullptr) == nullptr);
  CHECK(q.steal_next(all.at(0)) == all.at(0));
  CHECK(q.empty());
}
