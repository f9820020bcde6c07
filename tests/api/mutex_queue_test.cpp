// The queues of the mutexes that share a bucket (api/src/sync/mutex_queue.hpp): each is found by its address, however
// many there are.
#include "api/src/sync/mutex_queue.hpp"
#include "tests/support/catch.hpp"
#include "weft/sync.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

using weft::detail::mutex_queue;
using weft::detail::mutex_waiter;

namespace {

// Returns n mutexes of one bucket, at distances that are multiples of `stride` bytes.
std::vector<weft::mutex*> mutexes_of_one_bucket(std::vector<std::byte>& memory, std::size_t stride, std::size_t n) {
  memory.resize(stride * n * 400 + 64);
  std::vector<weft::mutex*> found;
  for (std::size_t at = 0; at + stride <= memory.size() && found.size() < n; at += stride) {
    auto* m = reinterpret_cast<weft::mutex*>(&memory[at]);
    if (weft::detail::address_hash(m) == 7) found.push_back(::new (m) weft::mutex);
  }
  REQUIRE(found.size() == n);
  return found;
}

struct counted {
  std::size_t queues = 0, to_wake = 0, deepest = 0, depths = 0;
};

void count_below(const mutex_waiter* w, std::size_t depth, counted& c) {
  if (!w) return;
  ++c.queues;
  c.to_wake += !w->heir;
  c.deepest = std::max(c.deepest, depth);
  c.depths += depth;
  for (const mutex_waiter* b : w->below) count_below(b, depth + 1, c);
}

counted count_all() {
  counted c;
  count_below(weft::detail::bucket_number(7).mutexes.root(), 1, c);
  return c;
}

}  // namespace

TEST_CASE("mutex_queue: found again, whatever comes and goes") {
  weft::rt::G g;
  std::vector<std::byte> memory;
  const auto mutexes = mutexes_of_one_bucket(memory, GENERATE(2, 64, 4096), 60);
  std::map<weft::mutex*, std::deque<std::unique_ptr<mutex_waiter>>> waiters;
  std::mt19937 random(GENERATE(1, 2, 3));
  auto& bucket = weft::detail::bucket_number(7);
  for (int i = 0; i < 5000; ++i) {
    weft::mutex* m = mutexes[random() % mutexes.size()];
    auto& mine = waiters[m];
    mutex_queue q(m);
    REQUIRE(q.first() == (mine.empty() ? nullptr : mine.front().get()));
    switch (random() % (i < 2500 ? 4 : 3)) {
      case 0:  // a waiter leaves
        if (!mine.empty()) {
          auto w = mine.begin() + static_cast<std::ptrdiff_t>(random() % mine.size());
          q.remove(**w);
          mine.erase(w);
        }
        break;
      case 1:  // the first waiter becomes the heir, or no longer is
        if (!mine.empty()) mine.front()->heir = !mine.front()->heir;
        break;
      default:
        if (i < 4000) {
          mine.push_back(std::make_unique<mutex_waiter>(&g, m));
          q.join(*mine.back(), *m);
        }
    }
    (void)q.settle(*m);
    REQUIRE(bucket.to_wake == count_all().to_wake);
    REQUIRE(weft::detail::mutex_bells[7].rings.load(weft::rt::relaxed) >= bucket.to_wake);
  }
  for (auto& [m, mine] : waiters) {
    for (; !mine.empty(); mine.pop_front()) mutex_queue(m).remove(*mine.front());
  }
  REQUIRE(bucket.mutexes.root() == nullptr);
  REQUIRE(bucket.to_wake == 0);
}

// U2 (mutex.cpp): a thread that unlocks may look at the bell at any time.
TEST_CASE("mutex_queue: the bell does not fall silent for a moment while somebody is to be woken") {
  weft::rt::G g;
  std::vector<std::byte> memory;
  weft::mutex* m = mutexes_of_one_bucket(memory, 64, 1)[0];
  std::atomic<std::uint64_t> phase{0};  // odd: a waiter must be woken
  auto wait_a_moment = [] {
    for (int i = 0; i < 30; ++i) weft::rt::cpu_relax();
  };
  std::atomic<bool> stop{false};
  std::atomic<int> silent{0};
  std::thread listens([&] {
    while (!stop) {
      const std::uint64_t before = phase;
      const bool rings = weft::detail::mutex_bells[7].rings.load() != 0;
      if (before % 2 != 0 && phase == before && !rings) ++silent;
    }
  });
  for (int i = 0; i < 100'000; ++i) {
    mutex_waiter first(&g, m), second(&g, m);
    mutex_queue q(m);
    q.join(first, *m);
    q.join(second, *m);
    (void)q.settle(*m);
    ++phase;
    wait_a_moment();
    q.remove(first);
    wait_a_moment();
    ++phase;
    q.remove(second);
  }
  stop = true;
  listens.join();
  CHECK(silent == 0);
}

TEST_CASE("mutex_queue: many are found in a few steps") {
  weft::rt::G g;
  std::vector<std::byte> memory;
  const auto mutexes = mutexes_of_one_bucket(memory, GENERATE(2, 8, 64, 192, 4096), 1000);
  std::deque<mutex_waiter> waiters;
  for (weft::mutex* m : mutexes) mutex_queue(m).join(waiters.emplace_back(&g, m), *m);
  const counted all = count_all();
  CHECK(all.queues == 1000);
  CHECK(all.deepest <= 40);
  CHECK(all.depths / all.queues <= 15);
  for (mutex_waiter& w : waiters) mutex_queue(w.of).remove(w);
  CHECK(weft::detail::bucket_number(7).mutexes.root() == nullptr);
}

TEST_CASE("mutex_queue: nobody queues behind those left behind") {
  weft::rt::G goes, comes;
  std::vector<std::byte> memory;
  weft::mutex* m = mutexes_of_one_bucket(memory, 64, 1)[0];
  mutex_queue q(m);
  mutex_waiter first(&goes, m), second(&goes, m), third(&comes, m);
  q.join(first, *m);
  first.heir = true;
  q.join(second, *m);
  goes.abandon();
  q.join(third, *m);
  CHECK(q.first() == &third);
  CHECK_FALSE(first.queued);
  CHECK_FALSE(second.queued);
  q.remove(third);
}

TEST_CASE("mutex_queue: those left behind at the front are dropped, wherever they lie") {
  weft::rt::G goes, stays;
  std::vector<std::byte> memory;
  const auto mutexes = mutexes_of_one_bucket(memory, 64, 100);
  std::deque<mutex_waiter> waiters;
  std::mt19937 random(1);
  std::size_t live = 0;
  for (weft::mutex* m : mutexes) {
    bool lives = false;
    for (auto n = random() % 3; n > 0; --n) {
      weft::rt::G* g = random() % 2 ? &goes : &stays;
      lives |= g == &stays;
      mutex_queue(m).join(waiters.emplace_back(g, m), *m);
    }
    live += lives;
  }
  goes.abandon();
  weft::detail::mutex_queues(7).drop_abandoned_of_all();
  CHECK(count_all().queues == live);
  CHECK(weft::detail::bucket_number(7).to_wake == live);
  for (mutex_waiter& w : waiters) {
    if (w.queued) mutex_queue(w.of).remove(w);
  }
  CHECK(weft::detail::bucket_number(7).mutexes.root() == nullptr);
}
