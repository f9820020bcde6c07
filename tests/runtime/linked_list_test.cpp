// A list with its links in the elements, compared with std::list.

#include "runtime/linked_list.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <array>
#include <list>
#include <random>
#include <vector>

using namespace weft::rt;

namespace {

struct element {
  list_links<element> links;
};
using elements = linked_list<element, &element::links>;

std::vector<element*> in_order(const elements& all) {
  std::vector<element*> found;
  for (element* e : all) found.push_back(e);
  return found;
}

}  // namespace

TEST_CASE("linked_list: in the order in which they came, wherever one is taken out") {
  std::mt19937 random(1);
  std::array<element, 6> some;
  elements all;
  std::list<element*> expected;
  for (int i = 0; i < 5000; ++i) {
    element* e = &some[random() % some.size()];
    if (auto at = std::find(expected.begin(), expected.end(), e); at != expected.end()) {
      expected.erase(at);
      all.erase(e);
    } else {
      expected.push_back(e);
      all.push_back(e);
    }
    REQUIRE(all.front() == (expected.empty() ? nullptr : expected.front()));
    REQUIRE(in_order(all) == std::vector<element*>(expected.begin(), expected.end()));
  }
  all.clear();
  CHECK(all.front() == nullptr);
}
