// Memory for items of one kind (runtime/slab_pool.hpp).

#include "runtime/slab_pool.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

using namespace weft::rt;

namespace {

struct item {
  std::uint64_t number;
  std::byte rest[184];
};

using pool = slab_pool<item>;

// Makes an item with this number. *firsts counts the items whose memory was never used before.
item* make(pool& p, std::uint64_t number, std::size_t* firsts = nullptr) {
  return p.make([&](void* at, bool first) {
    if (first && firsts) ++*firsts;
    auto* i = static_cast<item*>(at);
    i->number = number;
    return i;
  });
}

std::vector<item*> make_many(pool& p, std::size_t n) {
  std::vector<item*> items;
  for (std::size_t i = 0; i < n; ++i) items.push_back(make(p, i + 1));
  return items;
}

std::size_t count(const pool& p) {
  std::size_t n = 0;
  p.for_each([&](const item*) { ++n; });
  return n;
}

}  // namespace

TEST_CASE("slab pool: items lie apart, through several slabs, and keep what is in them") {
  static pool p;
  constexpr std::size_t n = 20'000;  // of 192 bytes: four slabs
  std::vector<item*> items = make_many(p, n);
  std::vector<std::uintptr_t> sorted;
  for (const item* i : items) sorted.push_back(reinterpret_cast<std::uintptr_t>(i));
  std::ranges::sort(sorted);
  for (std::size_t i = 1; i < n; ++i) REQUIRE(sorted[i] - sorted[i - 1] >= sizeof(item));
  for (std::size_t i = 0; i < n; ++i) REQUIRE(items[i]->number == i + 1);
  CHECK(count(p) == n);
}

TEST_CASE("slab pool: what was put back last is taken first") {
  static pool p;
  std::vector<item*> items = make_many(p, 3);
  CHECK(p.free_count() == 0);
  p.put(items.data(), 3);
  CHECK(p.free_count() == 3);
  CHECK(p.take_free() == items[2]);
  item* two[2];
  p.take_free(two, 2);
  CHECK(two[0] == items[0]);
  CHECK(two[1] == items[1]);
  CHECK(p.free_count() == 0);
  CHECK(count(p) == 3);
}

TEST_CASE("slab pool: a block loses its memory when all its items are free, and is cut anew") {
  static pool p;
  constexpr std::size_t n = 1000;
  std::vector<item*> items = make_many(p, n);
  // All items but one are put back: the block of that one stays as it is.
  item* kept = items[n / 2];
  std::erase(items, kept);
  p.put(items.data(), items.size());
  std::set<item*> forgotten;
  p.release_free([&](item* i) {
    CHECK(i->number != 0);
    CHECK(forgotten.insert(i).second);
  });
  CHECK(kept->number == n / 2 + 1);
  // A block has 85 items. Those that were forgotten read as zeros, those that are still free do not, and none is both.
  CHECK(forgotten.size() + p.free_count() == n - 1);
  CHECK(forgotten.size() >= n - 2 * 85);
  CHECK(p.free_count() > 0);
  for (const item* i : forgotten) CHECK(i->number == 0);
  CHECK(count(p) == n - forgotten.size());

  while (p.free_count() > 0) {
    const item* i = p.take_free();
    CHECK(!forgotten.contains(const_cast<item*>(i)));
    CHECK(i->number != 0);
  }
  std::size_t firsts = 0;
  for (std::size_t i = 0; i < forgotten.size(); ++i) CHECK(forgotten.contains(make(p, 1, &firsts)));
  // The last block had not been cut to its end before.
  CHECK(firsts <= 85);
  CHECK(count(p) == n);
}
