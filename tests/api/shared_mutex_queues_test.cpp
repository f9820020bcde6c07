// The two queues of each shared_mutex (api/src/sync/shared_mutex_queues.hpp): they are found by the mutex's address,
// and move from waiter to waiter.
#include "api/src/sync/shared_mutex_queues.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

using weft::detail::lock_side;
using weft::detail::shared_mutex_queues;
using weft::detail::shared_mutex_waiter;

namespace {

constexpr lock_side sides[] = {lock_side::writer, lock_side::reader};

// Mutexes of one bucket. No code here touches them.
std::vector<weft::shared_mutex*> addresses_of_one_bucket(std::size_t n) {
  static std::vector<std::byte> memory(1 << 20);
  std::vector<weft::shared_mutex*> found;
  for (std::size_t at = 0; found.size() < n; at += 4) {
    auto* m = reinterpret_cast<weft::shared_mutex*>(&memory.at(at));
    if (weft::detail::address_hash(m) == 7) found.push_back(m);
  }
  return found;
}

using queue = std::deque<std::unique_ptr<shared_mutex_waiter>>;

const shared_mutex_waiter* front(const queue& q) { return q.empty() ? nullptr : q.front().get(); }

bool nobody_waits() { return weft::detail::bucket_number(7).shared_mutexes.root() == nullptr; }

}  // namespace

TEST_CASE("shared_mutex_queues: found again, whatever comes and goes") {
  weft::rt::G g;
  const auto mutexes = addresses_of_one_bucket(20);
  std::map<std::pair<weft::shared_mutex*, lock_side>, queue> waiters;
  std::mt19937 random(GENERATE(1, 2, 3));
  for (int i = 0; i < 20'000; ++i) {
    weft::shared_mutex* m = mutexes[random() % mutexes.size()];
    shared_mutex_queues q(m);
    for (lock_side s : sides) REQUIRE(q.first(s) == front(waiters[{m, s}]));
    REQUIRE((q.mutex() == m) == (q.first(lock_side::writer) || q.first(lock_side::reader)));
    queue& mine = waiters[{m, sides[random() % 2]}];
    if (random() % 16 < (i < 10'000 ? 9u : 7u)) {
      const lock_side s = &mine == &waiters[{m, lock_side::writer}] ? lock_side::writer : lock_side::reader;
      mine.push_back(std::make_unique<shared_mutex_waiter>(&g, m, s));
      q.push_back(*mine.back());
    } else if (!mine.empty()) {
      auto w = mine.begin() + static_cast<std::ptrdiff_t>(random() % mine.size());
      q.remove(**w);
      mine.erase(w);
    }
  }
  for (auto& [of, mine] : waiters) {
    for (; !mine.empty(); mine.pop_front()) shared_mutex_queues(of.first).remove(*mine.front());
  }
  REQUIRE(nobody_waits());
}

TEST_CASE("shared_mutex_queues: those left behind at the front are dropped, wherever they lie") {
  weft::rt::G goes, stays;
  std::deque<shared_mutex_waiter> waiters;
  std::map<weft::shared_mutex*, bool> waited_for;
  std::mt19937 random(1);
  for (weft::shared_mutex* m : addresses_of_one_bucket(200)) {
    for (auto n = random() % 4; n > 0; --n) {
      weft::rt::G* g = random() % 2 ? &goes : &stays;
      waited_for[m] |= g == &stays;
      shared_mutex_queues(m).push_back(waiters.emplace_back(g, m, sides[random() % 2]));
    }
  }
  goes.abandon();
  shared_mutex_queues::drop_abandoned_of_all(weft::detail::bucket_number(7));
  for (auto [m, live] : waited_for) {
    shared_mutex_queues q(m);
    REQUIRE((q.mutex() != nullptr) == live);
    for (lock_side s : sides) REQUIRE((!q.first(s) || q.first(s)->g == &stays));
  }
  for (shared_mutex_waiter& w : waiters) {
    if (w.queued) shared_mutex_queues(w.of).remove(w);
  }
  REQUIRE(nobody_waits());
}
