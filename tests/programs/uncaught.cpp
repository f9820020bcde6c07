#include <stdexcept>
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    weft::go({.name = "bomber"}, [] { throw std::out_of_range("the bomb"); });
    weft::chan<int>().recv();
  });
}
