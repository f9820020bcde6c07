// For -D_GLIBCXX_DEBUG: the containers of this program are others than the library's.
#include <cassert>
#include <string>
#include <vector>
#include <weft/weft.hpp>

int main() {
  return weft::run(
      [] {
        const std::vector<weft::net::endpoint> found = weft::net::resolve("127.0.0.1", "80");
        assert(found.size() == 1 && found.front().port() == 80);
        assert(!weft::stack_high_water().empty());
      },
      {.measure_stacks = true});
}
